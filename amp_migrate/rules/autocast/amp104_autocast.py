"""Forward pass and loss run under autocast.

## What it does
Puts one `with autocast():` around the statements from the first forward that feeds a loss to the last
statement that computes it, for every backward, in the function or in its callers. Backward, step and
zero_grad stay outside, and `torch.autograd.grad` runs between two blocks, or without casts within one.

## Why
O1 patched torch for the whole process; autocast casts where it is entered. A region around the whole loop
would keep the fp16 copies of the weights, and training would stand still.

## Example
    output = model(images)
    loss = criterion(output, labels)

## Use instead
    with torch.cuda.amp.autocast():
        output = model(images)
        loss = criterion(output, labels)

## Safety
Faithful: networks of convolutions, linear layers, norms and the usual losses give the same bits as O1.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.inlines import Inline
from amp_migrate.plan.model import Decision, Insert, ReplaceExpression, Status, Wrap
from amp_migrate.project.order import position
from amp_migrate.rules.autocast.cached_weights import cleared, rewritten
from amp_migrate.rules.autocast.evaluation_places import cast_parts
from amp_migrate.rules.autocast.gradients_within import taken_within
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.region import Region

RULE = Rule("AMP104", "forward and loss run under autocast", Safety.FAITHFUL, order=20)


def decide(context: Context) -> Iterator[Decision]:
    """Wrap the regions of every backward."""
    if context.casts.never:
        return
    disabled = Disabled(context.unit)
    wrapped = [r for r in context.unit.regions if not disabled.holds(r)]
    joined = {i: r for i in context.inlines for r in wrapped if _continues(context, i, r)}
    for region in wrapped:
        yield _wrap(context, region, [i for i in joined if joined[i] is region])
    for taken, edits in taken_within(context, disabled):
        message = "gradients are taken without casts, as Apex ran backward passes"
        yield decision(RULE, Status.ROUTINE, taken.function.module, taken.call, message, edits)
    for inline in context.inlines:
        yield _inline(context, inline, joins=inline in joined)
    yield from cleared(context, RULE)
    yield from rewritten(context, RULE, lambda: cast_parts(context, disabled))


def header(context: Context, region: Region, *, training: bool) -> str | None:
    """Return the call that opens a region; None where an evaluation sees no flag."""
    enabled = context.casts.enabled(region.function, region.first, training=training)
    return None if enabled is None else context.spelling.autocast(enabled)


def _wrap(context: Context, region: Region, inlines: list[Inline]) -> Decision:
    tree = region.module.tree
    call = header(context, region, training=True)
    more = "\n".join(assignment(inline) for inline in inlines)
    edit = Wrap(tree.span(region.first), tree.span(region.last), f"with {call}:", more)
    message = f"forward and loss under `{call}`"
    return decision(RULE, Status.ROUTINE, region.module, region.first, message, [edit])


def _continues(context: Context, inline: Inline, region: Region) -> bool:
    """Tell whether a loss that gets a statement stands right behind a region, and has casts where that has them."""
    tree = inline.function.module.tree
    if inline.function is not region.function:
        return False
    block = tree.block(inline.statement)
    place = position(tree, inline.statement)
    if not place or block[place - 1] is not region.last:
        return False
    return _opening(context, inline) == header(context, region, training=True)


def _opening(context: Context, inline: Inline) -> str:
    enabled = context.casts.enabled(inline.function, inline.statement, training=True)
    return context.spelling.autocast(enabled or "")


def assignment(inline: Inline) -> str:
    """Return the statement that computes a loss or an output, its lines as deep as they stand to its own."""
    tree = inline.function.module.tree
    first, *more = tree.segment(inline.value).split("\n")
    line = tree.lines[inline.value.lineno - 1]
    deeper = len(line) - len(line.lstrip()) - inline.statement.col_offset
    more = [part[deeper:] if not part[:deeper].strip() else part for part in more]
    text = "\n".join([first, *more])
    return f"{inline.name} = {text if not more or _stands_alone(text) else f'({text})'}"


def _stands_alone(text: str) -> bool:
    """Tell whether an expression of several lines needs no parentheses around it."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _inline(context: Context, inline: Inline, *, joins: bool) -> Decision:
    """A loss computed in the argument of a call gets a statement of its own before it, in a block that may stand there."""
    tree = inline.function.module.tree
    call = _opening(context, inline)
    edits: list[Insert | ReplaceExpression] = []
    if not joins:
        text = f"with {call}:\n    {indent(assignment(inline))}"
        edits.append(Insert(tree.span(inline.statement), text, after=False))
    if inline.replaces:
        edits.append(ReplaceExpression(tree.span(inline.node), inline.name))
    message = f"the loss is computed under `{call}` before it is used"
    return decision(RULE, Status.ROUTINE, inline.function.module, inline.node, message, edits)


def indent(text: str) -> str:
    """Indent the later lines of an expression by one level."""
    return text.replace("\n", "\n    ")
