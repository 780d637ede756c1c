"""`scaler.update()` is missing.

## What it does
Nothing is changed. A note names the first `scaler.step` of a GradScaler that is never updated.

## Why
Without `update()` the scale never moves: after the first overflow every step is skipped, or a second `step` raises.

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

from amp_migrate.facts.native import Native
from amp_migrate.plan import Decision
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.remarks import note

RULE = Rule("AMP403", "scaler.update() is missing", Safety.REPORT)


def remark(native: Native) -> Iterator[Decision]:
    """Report a GradScaler that takes steps in this file and is updated nowhere."""
    for scaler in sorted(native.scalers):
        if "." in scaler or native.escapes(scaler):
            continue
        called = {
            method: [
                call
                for scope in native.scopes()
                for call in native.calls(scope, method)
                if native.scaler_of(call) == scaler
            ]
            for method in ("step", "update")
        }
        if called["step"] and not called["update"]:
            message = f"{scaler}.update() is never called, so the scale cannot move"
            advice = f"call {scaler}.update() once after the last step of every iteration"
            yield note(RULE, native, called["step"][0], message, advice)
