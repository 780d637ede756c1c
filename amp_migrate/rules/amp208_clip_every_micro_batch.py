"""A clip on every micro-batch moves to the step.

## What it does
Moves gradient clipping (and norm logging) from every micro-batch into the `if` that steps.

## Why
Apex unscaled every micro-batch, so a clip outside the `if` clipped each partial sum. Natively `unscale_` may
run once per step: a second call raises "unscale_() has already been called on this optimizer".

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    clip_grad_norm_(amp.master_params(optimizer), 1.0)
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    if (step + 1) % accumulation_steps == 0:
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

## Safety
Changes behaviour: the sum of the micro-batches is clipped once, not every partial sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan import Decision, Move, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.unit.cannot import Cannot

RULE = Rule("AMP208", "clipping on every micro-batch moves to the step", Safety.CHANGES, order=26)


def decide(context: Context) -> Iterator[Decision]:
    """Move the clips that the accumulation boundary must hold."""
    for unscale in context.unscales:
        module = unscale.function.module
        for stmt in unscale.moved:
            if unscale.accumulates and not context.settings.enabled(RULE.code):
                raise Cannot(
                    RULE.code,
                    module,
                    stmt,
                    "gradients are clipped on every micro-batch, and AMP208 is switched off",
                    "natively gradients can be unscaled once per step: move the clip to the step by hand",
                )
            span, anchor = module.tree.span(stmt), module.tree.span(unscale.before)
            status = Status.FIXED if unscale.accumulates else Status.ROUTINE
            message = "clipping moved from every micro-batch to the step: the accumulated sum is clipped once"
            yield decision(RULE, status, module, stmt, message, [Move(span, anchor, after=False)])
