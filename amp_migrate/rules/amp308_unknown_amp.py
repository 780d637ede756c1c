"""Calls that look like Apex on an `amp` that nothing ties to it.

## What it does
Nothing. The finding names the call.

## Why
`amp.scale_loss(...)` in a file that does not import `amp` raises NameError as soon as it runs, often only with
`--fp16`. One on `self.amp` or on a parameter that no call in sight fills may be Apex or not; were it, the
gradients scaled there would not go through the GradScaler.

## Example
    if args.fp16:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Report only. The call fails loudly where `amp` is bound to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amp_migrate.plan import Decision, Status
from amp_migrate.rules.base import Rule, Safety, decision
from amp_migrate.unit.strangers import Stranger

RULE = Rule("AMP308", "amp is used where nothing ties it to Apex", Safety.REPORT)


_NATIVE = {
    "initialize": "or make a GradScaler and put the forward passes under autocast",
    "scale_loss": "or write scaler.scale(loss).backward() with a GradScaler, and scaler.step(optimizer) after it",
    "master_params": "or call scaler.unscale_(optimizer) and name the parameters themselves",
    "state_dict": "or save the state of the GradScaler",
    "load_state_dict": "or load the state of the GradScaler",
}


def report(found: Iterable[Stranger]) -> Iterator[Decision]:
    """Report every call by an `amp` that is bound to nothing, or to something out of sight."""
    for stranger in found:
        message = f"`{stranger.receiver}` is bound nowhere in this file: this raises NameError as soon as it runs"
        advice = f"import amp at the top of this file and run again, {_NATIVE[stranger.name]}"
        if not stranger.unbound:
            message = f"`{stranger.receiver}` looks like Apex, but what it is cannot be seen"
            advice = f"give the files that set it to the tool as well, {_NATIVE[stranger.name]}"
        yield decision(RULE, Status.LEFT, stranger.module, stranger.call, message, advice=advice)
