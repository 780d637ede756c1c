"""A loss that is not divided by the number of micro-batches is reported.

## What it does
Nothing is changed. A finding names the backward.

## Why
Gradients of k micro-batches are summed: undivided, they are k times those of the mean. The learning rate may have
been tuned with that, so dividing is a choice.

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
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

from amp_migrate.facts.paths import defs, tail, uses, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.zeroing import lost_windows, steps_beside, windows
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Function
from amp_migrate.project.reach import reached_by
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import Backward

RULE = Rule("AMP202", "the loss is not divided by the accumulation steps", Safety.REPORT, order=95)


def decide(context: Context) -> Iterator[Decision]:
    """Report accumulating loops in which no loss is divided."""
    if not context.settings.enabled(RULE.code):
        return
    seen: set[ast.AST] = set()
    lost = lost_windows(context.unit, context.settings.enabled("AMP201"))
    for step, backward, limit in windows(context.unit):
        if backward.node in seen or backward.node in lost:
            continue
        if steps_beside(context.unit, step, limit):
            continue
        seen.add(backward.node)
        if not any(_divides(f.scope) for f in _computing(context.unit, backward)):
            loss = backward.module.tree.segment(backward.loss)
            message = (
                f"`{loss}` is not divided by the number of micro-batches whose gradients add up"
            )
            advice = f"divide `{loss}` by that number if the learning rate was meant for the mean over all of them"
            yield decision(
                RULE, Status.NOTE, backward.module, backward.node, message, advice=advice
            )


def _computing(unit: Unit, backward: Backward) -> Iterator[Function]:
    """Yield the functions that may have a part in a loss: its own, those that call it, and those it comes from."""
    yield backward.function
    yield from (site.function for site in unit.project.callers(backward.function))
    tree = backward.module.tree
    names = uses(backward.loss)
    for call in backward.function.calls:
        if names & (uses(call) | defs(tree.statement(call))):
            yield from reached_by(unit.project, call)


def _divides(scope: ast.AST) -> bool:
    return any(
        (isinstance(n, ast.BinOp | ast.AugAssign) and isinstance(n.op, ast.Div))
        or (isinstance(n, ast.Call) and tail(n) in ("div", "div_", "true_divide"))
        for n in walk(scope)
    )
