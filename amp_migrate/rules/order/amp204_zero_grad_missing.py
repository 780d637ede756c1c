"""`zero_grad` that is missing, stands between backward and step, or leaves out some steps.

## What it does
Puts `zero_grad()` behind the step: moved from between backward and step, added where nothing zeroes, or nothing in the
loop of the step or on some way to the next one, or taken out of an `if i > 0:`.

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

from amp_migrate.placement.reads.early import before_step
from amp_migrate.placement.reads.nowhere import hands_on_clearing, piling_up, zeroes_nowhere
from amp_migrate.placement.reads.zeroing import (
    after_some_steps,
    cleared_in,
    every_micro_batch,
    leaves_first,
)
from amp_migrate.placement.windows.surviving import leaves
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Hoist, Insert, Move, Status
from amp_migrate.project.order import inside
from amp_migrate.protocol.certain.used_again import Rewritten, used_again
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import Step, outermost_anchor

RULE = Rule("AMP204", "zero_grad is missing or precedes the step", Safety.CHANGES, order=33)


def decide(context: Context) -> Iterator[Decision]:
    """Move or add zero_grad."""
    enabled = context.settings.enabled(RULE.code)
    again = _used_again(context)
    at_times = list(after_some_steps(context.unit))
    for step, test in at_times:
        if not enabled or not (leaves_first(step, test) or step in again):
            raise _cleared_at_times(step, test)
    if not enabled:
        return
    early = list(before_step(context.unit))
    for zeroing in early:
        tree = zeroing.module.tree
        move = Move(
            tree.span(zeroing.statement), tree.span(outermost_anchor(zeroing.step)), after=True
        )
        message = (
            "zero_grad between backward and step threw the gradients away; it moves behind the step"
        )
        yield decision(RULE, Status.FIXED, zeroing.module, zeroing.statement, message, [move])
        for module, stmt in cleared_in(context.unit.project, zeroing.statement):
            message = "clears behind the step now, where its call went"
            yield decision(RULE, Status.ROUTINE, module, stmt, message)
    hoisted = [found for found in at_times if leaves_first(*found)]
    for step, test in hoisted:
        message = (
            "the second step used the gradients of the first again; zero_grad follows every step"
        )
        hoist = Hoist(step.tree.span(test), "body")
        yield decision(RULE, Status.FIXED, step.module, test, message, [hoist])
    if zeroes_nowhere(context.unit):
        live = [step for step in context.unit.steps if not context.is_gone(step.call)]
        yield from _added(live, "nothing zeroes the gradients; a zero_grad follows the step")
    elif not hands_on_clearing(context.unit):
        message = (
            "nothing in its loop zeroes the gradients, which piled up; a zero_grad follows the step"
        )
        piling = piling_up(context.unit)
        yield from _added(piling, message)
        mended = [*piling, *(s for s, _ in hoisted), *(z.step for z in early)]
        message = "a later step took the gradients of this one again, which nothing cleared on the way; a zero_grad follows it"
        yield from _added([step for step in again if step not in mended], message)
        message = (
            "a zero_grad follows this step as well, as it no longer stands at every micro-batch"
        )
        more = [step for step in _used_again(context, moved=True) if step not in again]
        for step in (step for step in more if step not in mended):
            texts = [
                z.module.tree.segment(z.statement)
                for z in every_micro_batch(context.unit)
                if z.step.function is step.function
            ]
            yield from _added([step], message, texts[0] if len(texts) == 1 else "")


def _used_again(context: Context, *, moved: bool = False) -> list[Step]:
    """Return the steps whose gradients a later step takes once more, as they are or where a zero_grad has `moved`."""
    if context.casts.never or hands_on_clearing(context.unit):
        return []
    enabled = moved and context.settings.enabled("AMP201")
    moves = list(every_micro_batch(context.unit)) if enabled else []
    rewritten = Rewritten(
        frozenset(node for zeroing in moves for node in ast.walk(zeroing.statement)),
        frozenset(
            step.call
            for zeroing in moves
            for step in context.unit.steps_of(zeroing.step.function)
            if inside(step.tree, step.call, outermost_anchor(zeroing.step))
        ),
    )
    direct = {step.call for step in context.unit.steps}
    if moved and not (moves and all(zeroing.step.call in direct for zeroing in moves)):
        return []  # a step by a helper, behind whose call the zero_grad goes
    if not moved and not any(leaves(context.unit, s) for s in context.unit.live_steps()):
        return []
    nodes = used_again(program_of(context.unit.project), rewritten)
    return [s for s in context.unit.steps if s.call in nodes and not context.is_gone(s.call)]


def _cleared_at_times(step: Step, test: ast.If) -> Cannot:
    return Cannot(
        "AMP908",
        step.module,
        test,
        f"the gradients of {step.text} are zeroed behind some of its steps only; the others leave unscaled ones, "
        "to which the next backward adds scaled ones",
        f"call {step.text}.zero_grad() behind every step, then run again",
    )


def _added(steps: Iterable[Step], message: str, spelt: str = "") -> Iterator[Decision]:
    """Put a zero_grad behind steps, where there is none; `spelt` as another one is."""
    for step in steps:
        text = spelt or f"{step.tree.segment(step.optimizer)}.zero_grad()"
        if step.anchor is not step.tree.statement(step.call):
            loop = step.anchor
            head = f"for {step.tree.segment(loop.target)} in {step.tree.segment(loop.iter)}:"  # type: ignore[attr-defined]
            text = f"{head}\n    {text}"
        edit = Insert(step.tree.span(step.anchor), text, after=True)
        yield decision(RULE, Status.FIXED, step.module, step.call, message, [edit])
