"""A clip inside the `scale_loss` block clips unscaled gradients now.

## What it does
Keeps the clip after the backward, with `scaler.unscale_(optimizer)` before it.

## Why
Inside the block gradients are still multiplied by the loss scale, so a threshold of 1.0 was in effect
1/65536: almost every step was clipped to nothing.

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)

## Use instead
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)

## Safety
Changes behaviour: the threshold now means what it says.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.plan.model import Decision
from amp_migrate.rules.base import Context, Rule, Safety
from amp_migrate.rules.order.behind_block import clips, ended, fixed

RULE = Rule(
    "AMP207",
    "clipping inside the scale_loss block sees unscaled gradients",
    Safety.CHANGES,
    order=27,
)


def decide(context: Context) -> Iterator[Decision]:
    """Report the clips that stood inside a scale_loss block; AMP106 unscales before them."""
    for block in context.scaled.values():
        yield from _clips(context, block)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """End the block before its first clip."""
    for block in context.scaled.values():
        yield from ended(context, block, _clips(context, block))


def _clips(context: Context, block: ScaleLoss) -> Iterator[Decision]:
    for call in clips(context, block):
        clipped = "clipped scaled gradients"
        if casts_these_alone(context.unit) and _takes_masters(context, call):
            clipped = "clipped nothing, as O2 and O3 give master weights their gradients behind it"
        yield from fixed(
            context,
            block,
            RULE,
            [call],
            "gradients are clipped inside the scale_loss block, and AMP207 is switched off",
            "move the clip behind the block, then run again",
            f"this clip inside scale_loss {clipped}; it moves behind the block and clips the real ones",
        )


def _takes_masters(context: Context, call: ast.Call) -> bool:
    """Tell whether a clip is given what `amp.master_params` gives."""
    project, module = context.unit.project, context.unit.project.module_of(call)
    return any(
        isinstance(part, ast.expr) and project.apex(module, part) == "apex.amp.master_params"
        for given in all_given(call)
        for part in ast.walk(given)
    )
