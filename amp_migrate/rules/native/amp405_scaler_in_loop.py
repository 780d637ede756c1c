"""A GradScaler is made anew in the loop.

## What it does
Nothing is changed. A note names a GradScaler that some path makes again while an optimizer that it stepped goes on, and the
step.

## Why
A new GradScaler starts at 65536 again and forgets what it learned, so every round of the loop skips its first steps.

## Example
    for epoch in range(epochs):
        scaler = torch.cuda.amp.GradScaler()
        for images, labels in loader:
            ...
            scaler.step(optimizer)

## Use instead
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        for images, labels in loader:
            ...
            scaler.step(optimizer)

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.certain.remade import Life
from amp_migrate.protocol.faults import Breach
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import causes, code, note, of_turn

RULE = Rule("AMP405", "a GradScaler is made anew in the loop", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report GradScalers that live shorter than the optimizer they serve."""
    for item, turn in causes(reading, lambda turn: turn.after is Life.ANEW, Breach.REMADE):
        step = code(item)
        message = (
            f"this GradScaler is made anew, and forgets its loss scale, although {step} goes on with "
            "the same optimizer"
        )
        advice = f"make it once, before the loop, beside {reading.optimizer(item)}"
        yield note(RULE, of_turn(turn), message, advice, [step])
