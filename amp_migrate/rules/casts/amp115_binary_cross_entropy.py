"""Binary cross entropy on probabilities stays outside autocast.

## What it does
Ends the autocast region before `F.binary_cross_entropy` or `nn.BCELoss`, and casts what it is given with
`.float()`. Where the forward goes on after it, it runs under `autocast(enabled=False)`, and so it does in a
criterion or network of the project. One that stands together with what autocast must cover is computed before it.

## Why
Under autocast it raises "binary_cross_entropy and BCELoss are unsafe to autocast", even for fp32 inputs.

## Example
    output = model(images)
    loss = F.binary_cross_entropy(output, labels)

## Use instead
    with torch.cuda.amp.autocast():
        output = model(images)
    loss = F.binary_cross_entropy(output.float(), labels)

## Safety
Faithful. `binary_cross_entropy_with_logits` is faster and safer, but changes the model.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator

from amp_migrate.autocast.bce import Bce, is_mentioned, probabilities
from amp_migrate.autocast.bce_called import (
    Called,
    called,
    can_be_computed_before,
    can_be_kept_out,
    inputs,
    is_plain,
)
from amp_migrate.autocast.disabled import Disabled
from amp_migrate.facts.paths import all_given, path, variables
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Decision, Edit, Replace, ReplaceExpression, Status, Wrap
from amp_migrate.rules.autocast.amp104_autocast import indent
from amp_migrate.rules.autocast.evaluation_places import cast_at
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.region import calls_in

RULE = Rule("AMP115", "binary cross entropy stays outside autocast", Safety.FAITHFUL, order=19)


def decide(context: Context) -> Iterator[Decision]:
    """Cast the inputs of binary cross entropy, and wrap those that cannot leave their region."""
    together: dict[ast.stmt, list[Bce]] = {}
    for bce in context.entropies:
        together.setdefault(bce.statement, []).append(bce)
    for found in together.values():
        if any(bce.computed or bce.beside for bce in found):
            yield _computed_before(context, found)
        else:
            yield from (_decision(context, bce) for bce in found)
    if not context.casts.never and is_mentioned(context.unit):
        yield from _called(context)


def _called(context: Context) -> Iterator[Decision]:
    """Keep out what regions reach in a criterion or network of the project, or note it."""
    unit = context.unit
    disabled = Disabled(unit)
    moved = cast_at(context, context.evaluations(), disabled).regions
    evaluated = [*context.evaluations(), *(r for r in moved if not disabled.holds(r))]
    told = {bce.call for bce in context.entropies}
    found = [
        each
        for each in called(unit, [*unit.trained_calls(), *calls_in(evaluated)])
        if each.node not in told
    ]
    kept: dict[ast.stmt, list[Called]] = {}
    for each in found:
        kept.setdefault(each.statement, []).append(each)
    for statement, together in kept.items():
        if can_be_kept_out(unit, together):
            yield _kept_out(context, statement, together)
        elif can_be_computed_before(unit, together):
            yield _called_before(context, statement, together)
        else:
            yield from (_noted(context, each) for each in together)


def _kept_out(context: Context, statement: ast.stmt, together: list[Called]) -> Decision:
    module = together[0].module
    tree = module.tree
    span = tree.span(statement)
    edits: list[Edit] = [Wrap(span, span, f"with {context.spelling.autocast('False')}:")]
    edits += _in_fp32(tree, [given for each in together for given in inputs(each.node)])
    message = "binary cross entropy stays outside the autocast of its callers, which refuses it"
    return decision(RULE, Status.ROUTINE, module, together[0].node, message, edits)


def _called_before(context: Context, statement: ast.stmt, together: list[Called]) -> Decision:
    """Compute binary cross entropy before its statement, and what it compares before it under the casts of the caller."""
    module = together[0].module
    tree = module.tree
    taken = variables(tree.scope(statement))
    names, losses = _free("output", taken), _free("bce_loss", taken)
    before: list[str] = []
    within = [f"with {context.spelling.autocast('False')}:"]
    apart: dict[ast.expr, str] = {}
    for each in together:
        texts: dict[ast.expr, str] = {}
        for given in inputs(each.node):
            texts[given] = _as_float(tree, given)
            if not is_plain(context.unit, each, given):
                name = next(names)
                before.append(f"{name} = {tree.segment(given)}")
                texts[given] = f"{name}.float()"
        apart[each.node] = next(losses)
        within.append(f"    {apart[each.node]} = {indent(tree.segment(each.node, texts))}")
    lines = [*before, *within, tree.segment(statement, apart)]
    message = "binary cross entropy stays outside the autocast of its callers, which refuses it"
    edits: list[Edit] = [Replace(tree.span(statement), "\n".join(lines))]
    return decision(RULE, Status.ROUTINE, module, together[0].node, message, edits)


def _noted(context: Context, each: Called) -> Decision:
    message = f"this binary cross entropy may run under the autocast around `{ast.unparse(each.call.func)}(...)`, where it raises"
    advice = (
        "use binary_cross_entropy_with_logits on the logits, or compute it of .float() inputs under "
        f"`with {context.spelling.autocast('False')}:`"
    )
    return decision(RULE, Status.NOTE, each.module, each.node, message, advice=advice)


def _computed_before(context: Context, found: list[Bce]) -> Decision:
    """Give the networks in the arguments statements of their own, which autocast covers."""
    module, stmt = found[0].module, found[0].statement
    tree = module.tree
    taken = variables(tree.scope(stmt))
    names, losses = _free("output", taken), _free("bce_loss", taken)
    lines: list[str] = []
    texts: dict[ast.expr, str] = {}
    for bce in found:
        given = probabilities(bce.call)
        assert given is not None
        if bce.computed:
            name = next(names)
            lines.append(f"{name} = {tree.segment(given)}")
            texts[given] = f"{name}.float()"
        else:
            texts[given] = _as_float(tree, given)
    lines.append(f"with {context.spelling.autocast('False')}:")
    if any(bce.beside for bce in found):
        apart: dict[ast.expr, str] = {bce.call: next(losses) for bce in found}
        lines += [
            f"    {name} = {indent(tree.segment(call, texts))}" for call, name in apart.items()
        ]
        lines.append(tree.segment(stmt, apart))
    else:
        lines.append("    " + indent(tree.segment(stmt, texts)))
    message = "binary cross entropy stays outside autocast, which refuses it, and the network before it inside"
    edits: list[Edit] = [Replace(tree.span(stmt), "\n".join(lines))]
    return decision(RULE, Status.ROUTINE, module, found[0].call, message, edits)


def _free(name: str, taken: Collection[str]) -> Iterator[str]:
    """Yield a name, and then with numbers, that a function does not have."""
    every = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(2)))
    return (one for one in every if one not in taken)


def _in_fp32(tree: Tree, given: list[ast.expr]) -> list[Edit]:
    """Return the edits that put what is given into fp32."""
    texts = [(node, _as_float(tree, node)) for node in given]
    return [ReplaceExpression(tree.span(n), text) for n, text in texts if text != tree.segment(n)]


def _as_float(tree: Tree, node: ast.expr) -> str:
    """Return an expression in fp32: a sigmoid, which fp16 rounds to 1, is computed of fp32."""
    text = tree.segment(node)
    if text.endswith(".float()"):
        return text
    if isinstance(node, ast.Call) and path(node.func) in ("torch.sigmoid", "F.sigmoid"):
        given = all_given(node)
        if len(given) == 1:
            return tree.segment(node, {given[0]: _as_float(tree, given[0])})
    atom = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"{text}.float()" if atom else f"({text}).float()"


def _decision(context: Context, bce: Bce) -> Decision:
    tree = bce.module.tree
    edits = _in_fp32(tree, inputs(bce.call)[:1])
    if bce.inside:
        span = tree.span(bce.statement)
        edits.append(Wrap(span, span, f"with {context.spelling.autocast('False')}:"))
    message = "binary cross entropy stays outside autocast, which refuses it"
    return decision(RULE, Status.ROUTINE, bce.module, bce.call, message, edits)
