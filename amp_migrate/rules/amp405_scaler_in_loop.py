"""A GradScaler is made anew in the loop.

## What it does
Nothing is changed. A note names a GradScaler that is made in a loop around the steps of an optimizer which is
made before the loop.

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

import ast
from collections.abc import Iterator

from amp_migrate.facts.native import Native
from amp_migrate.facts.paths import walk
from amp_migrate.plan import Decision
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.remarks import note

RULE = Rule("AMP405", "a GradScaler is made anew in the loop", Safety.REPORT)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def remark(native: Native) -> Iterator[Decision]:
    """Report GradScalers that live shorter than the optimizer they serve."""
    tree = native.tree
    for scaler, node in native.creations:
        loop = tree.parent(node)
        if not isinstance(loop, _LOOPS) or tree.block(node) is not loop.body:
            continue
        stored = {
            n.id for n in walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        steps = [s for s in native.calls(loop, "step") if native.scaler_of(s) == scaler]
        outlives = [
            s
            for s in steps
            if s.args and isinstance(s.args[0], ast.Name) and s.args[0].id not in stored
        ]
        if outlives:
            message = (
                "this GradScaler is made anew in every round of the loop, and forgets its scale"
            )
            advice = "make it once, before the loop, beside the optimizer"
            yield note(RULE, native, node, message, advice)
