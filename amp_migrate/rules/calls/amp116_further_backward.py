"""Every other backward into the same parameters is scaled as well.

## What it does
Writes `scaler.scale(loss).backward()` for a plain `loss.backward()` beside scaled ones.

## Why
Apex unscaled each backward by itself, so a plain one could stand beside it. Natively gradients are unscaled
once, at the step: a plain backward would be divided by 65536.

## Example
    penalty.backward()

## Use instead
    scaler.scale(penalty).backward()

## Safety
Faithful: the accumulated gradients are the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.amp103_scale_loss import late
from amp_migrate.training.steps import Backward

RULE = Rule("AMP116", "further backward passes are scaled as well", Safety.FAITHFUL, order=16)


def decide(context: Context) -> Iterator[Decision]:
    """Scale the plain backward passes of a unit that has scale_loss blocks."""
    if not any(b.scaled for b in context.unit.backwards):
        return
    for backward in context.unit.backwards:
        if backward.scaled or context.is_gone(backward.node):
            continue
        if backward in context.unit.unscaled:
            yield late(backward.module, backward.node)
        else:
            yield scaled(context, RULE, backward, Status.ROUTINE)


def scaled(context: Context, rule: Rule, backward: Backward, status: Status) -> Decision:
    """Make the decision that scales a plain backward."""
    tree = backward.module.tree
    scaler = context.scaler(backward.function, backward.node)
    loss = context.hoisted(backward.loss) or tree.segment(backward.loss)
    text = f"{scaler}.scale({loss}).backward"
    edit = ReplaceExpression(tree.span(backward.node.func), text)  # type: ignore[union-attr]
    return decision(rule, status, backward.module, backward.node, f"becomes `{text}()`", [edit])
