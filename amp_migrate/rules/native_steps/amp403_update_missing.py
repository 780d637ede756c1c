"""`scaler.update()` is missing on a path.

## What it does
Nothing is changed. A note names a `scaler.step` or `scaler.unscale_` that some path reaches after a step of the same
optimizer without `scaler.update()` in between, and that step.

## Why
Without `update()` the scale never moves, and torch raises a RuntimeError at the second `step` or `unscale_`.

## Example
    scaler.scale(loss).backward()
    scaler.step(optimizer)

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
from amp_migrate.protocol.certain.reading import Reading, Shown
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.gradients import Stage
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import code, last, note, of, of_turn, reaches, since

RULE = Rule("AMP403", "scaler.update() is missing on a path", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report, once for each step, what runs next of its optimizer without an update in between."""
    seen = set()
    for breach in (Breach.STEPPED_TWICE, Breach.UNSCALED_LATE):
        for item in of(reading, breach):
            turn = last(item, reaches(Stage.STEPPED))
            if turn is None or turn.node in seen or _is_same_window(item, turn):
                continue
            seen.add(turn.node)
            at, step = code(item), of_turn(turn)
            again = "it comes around again" if step.node is at.node else f"{step} came before it"
            update = f"{reading.scaler(item)}.update()"
            message = f"{again}, and no {update} in between, at which torch raises an error"
            advice = f"call {update} once after the last step of every iteration, on every path"
            named = [] if step.node is at.node else [step]
            yield note(RULE, at, message, advice, named)


def _is_same_window(item: Shown, step: Turn) -> bool:
    """Tell whether an `unscale_` stands behind the step on the same gradients: that is a matter of their order."""
    return item.breach is Breach.UNSCALED_LATE and not since(item, step)
