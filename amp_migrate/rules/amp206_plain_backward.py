"""A plain `loss.backward()` in a program that initialized Apex is scaled.

## What it does
Writes `scaler.scale(loss).backward()` where Apex was initialized but `scale_loss` forgotten.

## Why
Without loss scaling small fp16 gradients underflow to zero.

## Example
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Changes behaviour: gradients that were flushed to zero now arrive, and steps that overflow are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan import Decision, Status
from amp_migrate.rules.amp116_further_backward import scaled
from amp_migrate.rules.base import Context, Rule, Safety
from amp_migrate.unit.cannot import Cannot

RULE = Rule("AMP206", "a plain backward under Apex is scaled", Safety.CHANGES, order=16)


def decide(context: Context) -> Iterator[Decision]:
    """Scale the backward passes of a unit that has no scale_loss block."""
    if any(b.scaled for b in context.unit.backwards):
        return
    for backward in context.unit.backwards:
        if context.is_gone(backward.node):
            continue
        if not context.settings.enabled(RULE.code):
            raise Cannot(
                RULE.code,
                backward.module,
                backward.node,
                "the loss is not scaled although amp is initialized, and AMP206 is switched off",
                "scale the loss by hand: scaler.scale(loss).backward()",
            )
        yield scaled(context, RULE, backward, Status.FIXED)
