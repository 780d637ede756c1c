"""An optimizer steps by itself on gradients that a GradScaler scaled.

## What it does
Nothing is changed. A note names an `optimizer.step()` that some path reaches with gradients of a scaled loss, and the
backward pass or the `unscale_` that they come from.

## Why
Scaled gradients are up to 65536 times too large. Behind `unscale_` they have the right size, but only `scaler.step`
leaves out the step when they hold an infinity.

## Example
    scaler.scale(loss).backward()
    optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.gradients import Stage
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import code, last, note, of, of_turn, reaches, scales

RULE = Rule("AMP412", "an optimizer steps beside its GradScaler", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report steps of optimizers that leave out the GradScaler of their gradients."""
    for item in of(reading, Breach.SCALED_STEP, Breach.UNCHECKED):
        checked = item.breach is Breach.UNCHECKED
        turn = last(item, reaches(Stage.UNSCALED) if checked else scales)
        if turn is None:
            continue
        cause = of_turn(turn)
        if checked:
            message = f"this steps even where {cause} found an infinite gradient"
        else:
            message = f"this steps on gradients that {cause} left multiplied by the loss scale"
        scaler, optimizer = reading.scaler(item), reading.optimizer(item)
        advice = f"write {scaler}.step({optimizer}), and call {scaler}.update() after it"
        yield note(RULE, code(item), message, advice, [cause])
