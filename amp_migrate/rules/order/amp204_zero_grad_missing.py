"""`zero_grad` that is missing, stands between backward and step, or leaves out the first step.

## What it does
Puts `zero_grad()` behind the step: moved from between backward and step, added where nothing zeroes, or nothing in the
loop of the step, or taken out of an `if i > 0:`.

## Why
Between backward and step it throws the gradients away. Missing, all gradients pile up; under a GradScaler the
old ones are unscaled again at every step, and after one overflow inf never leaves them. Left out after the first
step, its gradients are used a second time.

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.zero_grad()
    optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()

## Safety
Changes behaviour: every step uses the gradients of its own window.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.placement.reads.nowhere import piling_up, zeroes_nowhere
from amp_migrate.placement.reads.zeroing import after_some_steps, before_step, leaves_first
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Hoist, Insert, Move, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import Step, outermost_anchor

RULE = Rule("AMP204", "zero_grad is missing or precedes the step", Safety.CHANGES, order=33)


def decide(context: Context) -> Iterator[Decision]:
    """Move or add zero_grad."""
    enabled = context.settings.enabled(RULE.code)
    for step, test in after_some_steps(context.unit):
        if not enabled or not leaves_first(step, test):
            raise _cleared_at_times(step, test)
    if not enabled:
        return
    for zeroing in before_step(context.unit):
        tree = zeroing.module.tree
        move = Move(
            tree.span(zeroing.statement), tree.span(outermost_anchor(zeroing.step)), after=True
        )
        message = (
            "zero_grad between backward and step threw the gradients away; it moves behind the step"
        )
        yield decision(RULE, Status.FIXED, zeroing.module, zeroing.statement, message, [move])
    for step, test in after_some_steps(context.unit):
        message = (
            "the second step used the gradients of the first again; zero_grad follows every step"
        )
        hoist = Hoist(step.tree.span(test), "body")
        yield decision(RULE, Status.FIXED, step.module, test, message, [hoist])
    if zeroes_nowhere(context.unit):
        live = [step for step in context.unit.steps if not context.is_gone(step.call)]
        yield from _added(live, "nothing zeroes the gradients; a zero_grad follows the step")
    else:
        message = (
            "nothing in its loop zeroes the gradients, which piled up; a zero_grad follows the step"
        )
        yield from _added(piling_up(context.unit), message)


def _cleared_at_times(step: Step, test: ast.If) -> Cannot:
    return Cannot(
        "AMP908",
        step.module,
        test,
        f"the gradients of {step.text} are zeroed behind some of its steps only; the others leave unscaled ones, "
        "to which the next backward adds scaled ones",
        f"call {step.text}.zero_grad() behind every step, then run again",
    )


def _added(steps: Iterable[Step], message: str) -> Iterator[Decision]:
    """Put a zero_grad behind steps, where there is none."""
    for step in steps:
        text = f"{step.tree.segment(step.optimizer)}.zero_grad()"
        if step.anchor is not step.tree.statement(step.call):
            loop = step.anchor
            head = f"for {step.tree.segment(loop.target)} in {step.tree.segment(loop.iter)}:"  # type: ignore[attr-defined]
            text = f"{head}\n    {text}"
        edit = Insert(step.tree.span(step.anchor), text, after=True)
        yield decision(RULE, Status.FIXED, step.module, step.call, message, [edit])
