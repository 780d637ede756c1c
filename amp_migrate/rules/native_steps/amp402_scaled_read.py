"""Scaled gradients are read.

## What it does
Nothing is changed. A note names what clips, measures, edits or prints gradients between a backward pass of a scaled loss
and `scaler.unscale_(optimizer)` or `scaler.step(optimizer)`, in whatever function, and the backward pass.

Where the programs of a project have more than a million moments to look at, the note at its first GradScaler or autocast
block says that more may be due.

## Why
Gradients are up to 65536 times too large there, so nearly every step is clipped to a tiny one.

## Example
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)

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
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import code, first, last, note, of, of_turn, scales

_CUT_SHORT = (
    "native AMP begins here and was not followed to the end, as the programs around it have too many ways: more notes "
    "may be due on them"
)
RULE = Rule("AMP402", "scaled gradients are read", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report the first reading of gradients behind each scaled backward that some path has before unscale_."""
    seen = set()
    for item in of(reading, Breach.SCALED_READ):
        turn = last(item, scales)
        if turn is None or (item.function, turn.node) in seen:
            continue
        seen.add((item.function, turn.node))
        cause = of_turn(turn)
        unscale = f"{reading.scaler(item)}.unscale_({reading.optimizer(item)})"
        message = (
            f"gradients are read here while they are still multiplied by the loss scale of {cause}"
        )
        yield note(RULE, code(item), message, f"call {unscale} once before it", [cause])
    if reading.is_cut_short and (begins := first(reading)) is not None:
        yield note(RULE, begins, _CUT_SHORT, "give amp-migrate the files of one program alone")
