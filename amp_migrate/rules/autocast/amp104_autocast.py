"""Forward pass and loss run under autocast.

## What it does
Puts one `with autocast():` around the statements from the first forward that feeds a loss to the last
statement that computes it, for every backward, in the function or in its callers. Backward, step and
zero_grad stay outside.

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

from amp_migrate.autocast.adopted import adopted
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.regions import Inline
from amp_migrate.autocast.slicing.region import Region
from amp_migrate.plan.model import Decision, Insert, ReplaceExpression, Status, Wrap
from amp_migrate.rules.autocast.cached_weights import cleared
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.unit.cannot import Cannot

RULE = Rule("AMP104", "forward and loss run under autocast", Safety.FAITHFUL, order=20)


def decide(context: Context) -> Iterator[Decision]:
    """Wrap the regions of every backward."""
    if context.casts.never:
        return
    _refuse_other_flag(context)
    disabled = Disabled(context.unit)
    for region in context.unit.regions:
        if not disabled.holds(region.function):
            yield _wrap(context, region)
    for inline in context.inlines:
        yield _inline(context, inline)
    yield from cleared(context, RULE)


def _refuse_other_flag(context: Context) -> None:
    """Raise `Cannot` for an autocast of the source that is not on exactly where Apex is."""
    for backward in context.unit.backwards:
        block = adopted(context.unit.project, backward.function, backward.loss, backward.node)
        if block is None or context.is_gone(backward.node):
            continue
        wanted = context.casts.enabled(backward.function, block, training=True) or "True"
        given = {k.arg: ast.unparse(k.value) for call in _calls(block) for k in call.keywords}
        known = context.casts.condition.text
        if given.get("enabled", "True") not in (_spelt(wanted), _spelt(known)):
            raise Cannot(
                "AMP912",
                backward.module,
                block,
                "this autocast and Apex are not on under the same condition",
                f"write `enabled={known or wanted}` in this autocast, then run again",
            )


def _spelt(test: str | None) -> str | None:
    """Return a test as `ast.unparse` writes it."""
    return ast.unparse(ast.parse(test, mode="eval")) if test else test


def _calls(block: ast.With) -> list[ast.Call]:
    return [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]


def header(context: Context, region: Region, *, training: bool) -> str | None:
    """Return the call that opens a region; None where an evaluation sees no flag."""
    enabled = context.casts.enabled(region.function, region.first, training=training)
    return None if enabled is None else context.spelling.autocast(enabled)


def _wrap(context: Context, region: Region) -> Decision:
    tree = region.module.tree
    call = header(context, region, training=True)
    edit = Wrap(tree.span(region.first), tree.span(region.last), f"with {call}:")
    message = f"forward and loss under `{call}`"
    return decision(RULE, Status.ROUTINE, region.module, region.first, message, [edit])


def _inline(context: Context, inline: Inline) -> Decision:
    """A loss computed in the argument of a call gets a statement of its own before it."""
    tree = inline.function.module.tree
    enabled = context.casts.enabled(inline.function, inline.statement, training=True)
    call = context.spelling.autocast(enabled or "")
    text = f"with {call}:\n    {inline.name} = {indent(tree.segment(inline.value))}"
    edits: list[Insert | ReplaceExpression] = [
        Insert(tree.span(inline.statement), text, after=False)
    ]
    if inline.replaces:
        edits.append(ReplaceExpression(tree.span(inline.node), inline.name))
    message = f"the loss is computed under `{call}` before it is used"
    return decision(RULE, Status.ROUTINE, inline.function.module, inline.node, message, edits)


def indent(text: str) -> str:
    """Indent the later lines of an expression by one level."""
    return text.replace("\n", "\n    ")


def covers(region: Region, node: ast.AST) -> bool:
    """Tell whether a node lies in a region."""
    return any(node is part for stmt in region.statements() for part in ast.walk(stmt))
