"""The last, partial accumulation window is reported.

## What it does
Nothing is changed. A finding names the loop and the edit.

## Why
Where the number of micro-batches is no multiple of k, gradients of the last ones are left behind: they are
dropped, or leak into the next epoch. Dropping or stepping them is a choice.

## Example
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    if (i + 1) % accumulation_steps == 0 or (i + 1) == len(loader):
        optimizer.step()

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.reads.zeroing import begins_empty, lost_windows, windows
from amp_migrate.placement.windows.counting import restarts
from amp_migrate.plan.model import Decision, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import asked

RULE = Rule(
    "AMP203", "the last, partial accumulation window is not stepped", Safety.REPORT, order=95
)


def decide(context: Context) -> Iterator[Decision]:
    """Report accumulation boundaries that never step the rest."""
    if not context.settings.enabled(RULE.code):
        return
    seen: set[Fork] = set()
    lost = lost_windows(context.unit, context.settings.enabled("AMP201"))
    for window in windows(context.unit):
        step, backward, limit = window
        if limit in seen:
            continue
        seen.add(limit)
        if isinstance(question(limit), ast.BoolOp) or len(context.unit.steps_of(step.function)) > 1:
            continue
        if not restarts(context.unit, step.function, limit):
            continue
        if backward.node in lost:
            continue
        test = asked(step.tree, limit)
        if begins_empty(context.unit, window):
            then = "the next window clears their gradients"
            advice = "step them as well at the end of the loop, if that was not meant, which changes the training"
        else:
            then = "their gradients are part of the next epoch's first step"
            advice = (
                f"step them as well at the end of the loop, or call {step.text}.zero_grad() behind it, if that was "
                "not meant; either changes the training"
            )
        yield decision(
            RULE,
            Status.NOTE,
            step.module,
            limit,
            f"micro-batches behind the last `{test}` of an epoch are not stepped there: {then}, as under Apex",
            advice=advice,
        )
