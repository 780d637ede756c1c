"""A backward is not scaled although its gradients are stepped on through a GradScaler.

## What it does
Nothing is changed. A note names a plain `loss.backward()` whose gradients `scaler.step` divides by the scale.

## Why
`scaler.step` unscales every gradient. What was not scaled before becomes 65536 times too small and is lost.

## Example
    scaler.scale(loss).backward()
    penalty.backward()
    scaler.step(optimizer)

## Use instead
    scaler.scale(loss).backward()
    scaler.scale(penalty).backward()
    scaler.step(optimizer)

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.native import Native, Scope
from amp_migrate.plan import Decision
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.remarks import note

RULE = Rule("AMP404", "an unscaled backward beside a GradScaler", Safety.REPORT)


def remark(native: Native) -> Iterator[Decision]:
    """Report plain backwards between which and the step of a GradScaler nothing else happens."""
    for scope in native.scopes():
        if _steps_otherwise(native, scope):
            continue
        for call in native.attribute_calls(scope, "backward"):
            loss = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(loss, ast.Name) or _is_scaled_name(native, scope, loss.id):
                continue
            scaler = _stepped_with(native, scope, call)
            if scaler is not None:
                message = f"this backward is not scaled, but {scaler}.step divides its gradients by the scale"
                advice = f"write {scaler}.scale({loss.id}).backward()"
                yield note(RULE, native, call, message, advice)


def _steps_otherwise(native: Native, scope: Scope) -> bool:
    """Tell whether another optimizer steps by itself, for which a plain backward may be meant."""
    return any(
        native.scaler_of(call) not in native.scalers
        and "sched" not in (native.scaler_of(call) or "")
        for call in native.attribute_calls(scope, "step")
    )


def _is_scaled_name(native: Native, scope: Scope, name: str) -> bool:
    """Tell whether a name may hold a scaled loss: set by a call of `scale`, or not set in sight."""
    values = [
        node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
    ]
    return not values or any(
        isinstance(n, ast.Attribute) and n.attr in ("scale", "scale_loss")
        for value in values
        for n in ast.walk(value)
    )


def _stepped_with(native: Native, scope: Scope, call: ast.Call) -> str | None:
    """Return the GradScaler that steps on the gradients of a backward in the same block, unconditionally."""
    tree = native.tree
    stmt = tree.statement(call)
    block = tree.block(stmt)
    step = next((s for s in native.calls(scope, "step") if tree.statement(s) in block), None)
    if step is None or block.index(tree.statement(step)) < block.index(stmt):
        return None
    if not any(native.is_scaled(b) for b in native.attribute_calls(scope, "backward")):
        return None
    between = block[block.index(stmt) + 1 : block.index(tree.statement(step))]
    if any(_ends_window(native, s) for s in between):
        return None
    return native.scaler_of(step)


def _ends_window(native: Native, stmt: ast.stmt) -> bool:
    return any(
        native.attribute_calls(stmt, method) for method in ("step", "zero_grad", "grad", "clone")
    )
