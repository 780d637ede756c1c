"""Scaled gradients are read.

## What it does
Nothing is changed. A note names what clips, measures, edits or prints gradients between a backward pass of a scaled loss
and `scaler.unscale_(optimizer)` or `scaler.step(optimizer)`, in whatever function, and the backward pass. Where only some ways
pass an `unscale_`, it says so: a second one would raise on these.

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

from amp_migrate.facts.paths import tail
from amp_migrate.plan.model import Decision
from amp_migrate.project.rounds import runs_before
from amp_migrate.protocol.certain.reading import Reading, Shown
from amp_migrate.protocol.faults import Breach
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import Code, code, first, last, note, of, of_turn, scales

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
        advice, named = f"call {unscale} once before it", [cause]
        if (above := _unscaled_at_times(reading, item)) is not None:
            message += ", on the ways past the unscale_ above"
            advice = f"let {above} run before it on every way, once, or read here only where it ran"
            named.append(above)
        yield note(RULE, code(item), message, advice, named)
    if reading.is_cut_short and (begins := first(reading)) is not None:
        yield note(RULE, begins, _CUT_SHORT, "give amp-migrate the files of one program alone")


def _unscaled_at_times(reading: Reading, item: Shown) -> Code | None:
    """Return the unscale_ that some ways to a read pass in its function: a second one before the read would raise there."""
    project = reading.program.project
    calls = (call for call in item.function.calls if tail(call) == "unscale_")
    before = (call for call in calls if runs_before(project, item.function, call, item.node))
    return next((Code(item.function, call) for call in before), None)
