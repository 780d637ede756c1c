"""A scaled backward adds to gradients that are unscaled.

## What it does
Nothing is changed. A note names a backward pass of a scaled loss that some path runs after `scaler.unscale_` and before the
step, and the `unscale_`.

## Why
Its gradients are added to ones that were divided by the scale, and nothing divides them: they outweigh the others 65536
times.

## Example
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    scaler.scale(penalty).backward()
    scaler.step(optimizer)

## Use instead
    scaler.scale(loss).backward()
    scaler.scale(penalty).backward()
    scaler.unscale_(optimizer)
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
from amp_migrate.rules.native.remarks import code, last, note, of, of_turn, reaches

RULE = Rule("AMP414", "a scaled backward adds to unscaled gradients", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report scaled backward passes between an unscale_ and its step."""
    for item in of(reading, Breach.AFTER_UNSCALE):
        turn = last(item, reaches(Stage.UNSCALED))
        if turn is not None:
            at, unscale = code(item), of_turn(turn)
            message = f"{unscale} came first: these gradients stay multiplied by the loss scale"
            advice = f"call {unscale.text} after the last backward pass, right before the step"
            yield note(RULE, at, message, advice, [unscale])
