"""`zero_grad` on every micro-batch moves to the step.

## What it does
Moves `zero_grad()` behind the step, into the `if` of the accumulation boundary.

## Why
Gradients that are zeroed on every micro-batch never accumulate: each step saw the last micro-batch alone.

## Example
    optimizer.zero_grad()
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    if (i + 1) % accumulation_steps == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

## Safety
Changes behaviour: gradients accumulate, as the loop says they should.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.placement.reads.zeroing import cleared_in, every_micro_batch
from amp_migrate.plan.model import Decision, Drop, Move, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import outermost_anchor

RULE = Rule("AMP201", "zero_grad on every micro-batch moves to the step", Safety.CHANGES, order=32)


def decide(context: Context) -> Iterator[Decision]:
    """Move the zero_grad calls that defeat accumulation."""
    if not context.settings.enabled(RULE.code):
        return
    for zeroing in every_micro_batch(context.unit):
        tree = zeroing.module.tree
        span = tree.span(zeroing.statement)
        edit = (
            Drop(span)
            if zeroing.repeated
            else Move(span, tree.span(outermost_anchor(zeroing.step)), after=True)
        )
        message = (
            "zero_grad on every micro-batch kept gradients from adding up; it moves behind the step"
        )
        yield decision(RULE, Status.FIXED, zeroing.module, zeroing.statement, message, [edit])
        for module, stmt in cleared_in(context.unit.project, zeroing.statement):
            message = "clears behind the step now, where its call went"
            yield decision(RULE, Status.ROUTINE, module, stmt, message)
