"""A backward is not scaled although its gradients are stepped on through a GradScaler.

## What it does
Nothing is changed. A note names a plain `loss.backward()` whose gradients `scaler.step` or `scaler.unscale_` divides by the
scale, alone or added to scaled ones.

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

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import causes, code, is_plain_backward, note, of_turn

RULE = Rule("AMP404", "an unscaled backward beside a GradScaler", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report each plain backward whose gradients a GradScaler divides by its scale."""
    for item, turn in causes(
        reading, lambda turn: is_plain_backward(reading, turn), Breach.DIVIDED, Breach.MIXED
    ):
        backward, divides = of_turn(turn), code(item)
        message = (
            f"this backward is not scaled, but {divides} divides its gradients by the loss scale"
        )
        scaled = f"{reading.scaler(item)}.scale({_loss(turn.node)}).backward()"
        yield note(RULE, backward, message, f"write {scaled}", [divides])


def _loss(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
        return ast.unparse(node.func.value)
    return "loss"
