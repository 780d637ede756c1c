"""A scheduler that steps on every micro-batch is reported.

## What it does
Nothing is changed. A finding names the call.

## Why
The schedule then runs k times faster than the optimizer steps. Its length may have been chosen for that.

## Example
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
    scheduler.step()

## Use instead
    if (i + 1) % accumulation_steps == 0:
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import called_alone
from amp_migrate.placement.reads.zeroing import windows
from amp_migrate.plan.model import Decision, Status
from amp_migrate.project import Module, Project
from amp_migrate.project.order import loop_of
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steppers import is_schedule

RULE = Rule("AMP210", "the scheduler steps on every micro-batch", Safety.REPORT, order=95)


def decide(context: Context) -> Iterator[Decision]:
    """Report scheduler steps beside an accumulation boundary."""
    if not context.settings.enabled(RULE.code):
        return
    for step, _, limit in windows(context.unit):
        for stmt in step.tree.block(limit):
            if (
                _steps_schedule(context.unit.project, step.module, stmt)
                and loop_of(step.tree, stmt) is not None
            ):
                message = "the scheduler steps on every micro-batch, the optimizer once per window"
                advice = (
                    "move it into the `if` that steps, unless the schedule counts micro-batches"
                )
                yield decision(RULE, Status.NOTE, step.module, stmt, message, advice=advice)


def _steps_schedule(project: Project, module: Module, stmt: ast.stmt) -> bool:
    call = called_alone(stmt)
    func = call.func if call is not None else None
    if not isinstance(func, ast.Attribute) or func.attr != "step":
        return False
    return is_schedule(project, module, func.value)
