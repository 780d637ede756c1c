"""A loss that is not divided by the number of micro-batches is reported.

## What it does
Nothing is changed. A finding names the backward.

## Why
Gradients of k micro-batches are summed: undivided, they are k times those of the mean. The learning rate may have
been tuned with that, so dividing is a choice.

## Example
    scaled_loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    loss = loss / accumulation_steps

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import walk
from amp_migrate.plan import Decision, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.unit.steps import boundary
from amp_migrate.unit.zeroing import backward_before, counts_micro_batches

RULE = Rule("AMP202", "the loss is not divided by the accumulation steps", Safety.REPORT, order=95)


def decide(context: Context) -> Iterator[Decision]:
    """Report accumulating loops in which no loss is divided."""
    if not context.settings.enabled(RULE.code):
        return
    seen: set[ast.AST] = set()
    for step in context.unit.steps:
        backward = backward_before(context.unit, step, context.gone_nodes)
        limit = boundary(step, backward.node) if backward is not None else None
        if (
            backward is None
            or limit is None
            or backward.node in seen
            or not counts_micro_batches(limit)
        ):
            continue
        seen.add(backward.node)
        if not _divides(backward.function.scope):
            message = "the loss of a micro-batch is not divided by the number that is accumulated"
            advice = "divide it if the learning rate was meant for the mean of the whole batch"
            yield decision(
                RULE, Status.NOTE, backward.module, backward.node, message, advice=advice
            )


def _divides(scope: ast.AST) -> bool:
    return any(
        isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, ast.Div) for n in walk(scope)
    )
