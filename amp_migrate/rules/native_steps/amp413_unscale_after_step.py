"""`scaler.unscale_` runs after the step.

## What it does
Nothing is changed. A note names an `unscale_` that some path reaches after `scaler.step` of the same optimizer, with no
backward pass in between, and the step.

## Why
`scaler.step` has divided the gradients by the scale already; torch raises a RuntimeError.

## Example
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

## Use instead
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)

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
from amp_migrate.rules.native.remarks import code, last, note, of, of_turn, reaches, since

RULE = Rule("AMP413", "scaler.unscale_() runs after the step", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report what unscales gradients that a step has used."""
    for item in of(reading, Breach.UNSCALED_LATE):
        turn = last(item, reaches(Stage.STEPPED))
        if turn is not None and not since(item, turn):
            at, step = code(item), of_turn(turn)
            message = f"{step} came first and has unscaled these gradients: torch raises an error"
            advice = f"move {at.text} before {step.text}"
            yield note(RULE, at, message, advice, [step])
