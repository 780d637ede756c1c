"""`scaler.update()` runs between a backward and the step on its gradients.

## What it does
Nothing is changed. A note names a `scaler.update()` that some path runs after a scaled backward and before the step on its
gradients, and that step.

## Why
`update()` may change the scale. The step then divides gradients by another scale than the one they were multiplied by, and
micro-batches of one step count differently. Where nothing was stepped or unscaled, torch raises an error.

## Example
    scaler.scale(loss).backward()
    scaler.update()
    if (i + 1) % 4 == 0:
        scaler.step(optimizer)
        optimizer.zero_grad()

## Use instead
    scaler.scale(loss).backward()
    if (i + 1) % 4 == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.gradients import Grad, State
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import causes, code, note, of_turn

RULE = Rule("AMP410", "scaler.update() runs before the step on scaled gradients", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report each update that changes the scale of gradients which wait for their step."""
    for item, turn in causes(reading, _goes_stale, Breach.RESCALED):
        update, divides = of_turn(turn), code(item)
        message = f"the loss scale may change here, before {divides} divides the gradients by it"
        step = f"{reading.scaler(item)}.step({reading.optimizer(item)})"
        advice = f"call {update.text} only after {step}"
        yield note(RULE, update, message, advice, [divides])


def _goes_stale(turn: Turn) -> bool:
    return isinstance(turn.after, State) and turn.after.grad is Grad.STALE
