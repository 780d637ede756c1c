"""Scaled gradients are clipped.

## What it does
Nothing is changed. A note names a clip between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` in a
function that never calls `scaler.unscale_`.

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

import ast
from collections.abc import Iterator

from amp_migrate.facts.native import Native
from amp_migrate.plan import Decision
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.remarks import asks_for_amp, note

RULE = Rule("AMP402", "scaled gradients are clipped", Safety.REPORT)


def remark(native: Native) -> Iterator[Decision]:
    """Report clips of gradients that are still scaled."""
    for scope in native.scopes():
        steps = native.calls(scope, "step")
        if not steps or native.attribute_calls(scope, "unscale_"):
            continue
        scaled = [b for b in native.attribute_calls(scope, "backward") if native.is_scaled(b)]
        for clip in native.clips(scope):
            step = next((s for s in steps if _between(native, scaled, clip, s)), None)
            if step is None or asks_for_amp(native, clip):
                continue
            optimizer = native.tree.segment(step.args[0]) if step.args else "optimizer"
            scaler = native.scaler_of(step)
            if scaler is not None and not native.escapes(scaler):
                message = "the gradients are still scaled here, so the clip is far too strong"
                advice = f"call {scaler}.unscale_({optimizer}) before it"
                yield note(RULE, native, clip, message, advice)


def _between(native: Native, scaled: list[ast.Call], clip: ast.Call, step: ast.Call) -> bool:
    return native.precedes(clip, step) and any(native.precedes(b, clip) for b in scaled)
