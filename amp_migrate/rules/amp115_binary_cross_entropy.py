"""Binary cross entropy on probabilities stays outside autocast.

## What it does
Ends the autocast region before `F.binary_cross_entropy` or `nn.BCELoss`, and casts what it is given with
`.float()`. Where the forward goes on after it, it runs under `autocast(enabled=False)`. One in a criterion or
network of the project stays as it is, with a note.

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
from collections.abc import Iterator

from amp_migrate.plan import Decision, Edit, ReplaceExpression, Status, Wrap
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.unit.bce import Bce, called, is_mentioned
from amp_migrate.unit.evaluation import evaluations

RULE = Rule("AMP115", "binary cross entropy stays outside autocast", Safety.FAITHFUL, order=19)


def decide(context: Context) -> Iterator[Decision]:
    """Cast the inputs of binary cross entropy, and wrap those that cannot leave their region."""
    for bce in context.entropies:
        yield _decision(context, bce)
    if not context.casts.never and is_mentioned(context.unit):
        yield from _called(context)


def _called(context: Context) -> Iterator[Decision]:
    """Note what regions reach in a criterion or network of the project."""
    unit = context.unit
    regions = [*unit.regions, *evaluations(unit, context.gone_nodes)]
    told = {bce.call for bce in context.entropies}
    for node, (module, call) in called(unit, regions).items():
        if node not in told:
            message = f"this may run under the autocast around `{ast.unparse(call.func)}(...)`, which refuses it"
            advice = (
                "use binary_cross_entropy_with_logits on the logits, or compute it of .float() inputs under "
                f"`with {context.spelling.autocast('False')}:`"
            )
            yield decision(RULE, Status.NOTE, module, node, message, advice=advice)


def _decision(context: Context, bce: Bce) -> Decision:
    tree = bce.module.tree
    edits: list[Edit] = []
    given = bce.call.args[0]
    text = tree.segment(given)
    if not text.endswith(".float()"):
        atom = isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        edits.append(
            ReplaceExpression(tree.span(given), f"{text}.float()" if atom else f"({text}).float()")
        )
    if bce.inside:
        span = tree.span(bce.statement)
        edits.append(Wrap(span, span, f"with {context.spelling.autocast('False')}:"))
    message = "binary cross entropy stays outside autocast, which refuses it"
    return decision(RULE, Status.ROUTINE, bce.module, bce.call, message, edits)
