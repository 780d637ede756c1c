"""A step inside the `scale_loss` block steps on unscaled gradients now.

## What it does
Keeps the step after the backward, through the GradScaler.

## Why
Inside the block gradients are still multiplied by the loss scale, and no overflow has been looked for yet:
the step was 65536 times too long, or hidden by Adam, which divides by the size of the gradients.

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

## Safety
Changes behaviour: the step is as long as the learning rate says, and is skipped after an overflow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision
from amp_migrate.rules.base import Context, Rule, Safety
from amp_migrate.rules.order.behind_block import ended, fixed, steps, steps_while_entered

RULE = Rule(
    "AMP212", "a step inside the scale_loss block uses unscaled gradients", Safety.CHANGES, order=28
)


def decide(context: Context) -> Iterator[Decision]:
    """Report the steps that stood inside a scale_loss block; AMP105 rewrites them."""
    for block in context.scaled.values():
        yield from _steps(context, block, steps_while_entered(context, block))


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """End the block before its first step; raises `Cannot` where what enters the block is elsewhere."""
    for block in context.scaled.values():
        made = list(steps(context, block))
        for step in steps_while_entered(context, block):
            if step not in made:
                raise Cannot(
                    RULE.code,
                    context.unit.project.module_of(step),
                    step,
                    "the optimizer steps while a scale_loss block is entered that is not written here",
                    "step behind the block, on gradients that are unscaled",
                )
        yield from ended(context, block, _steps(context, block, made))


def _steps(context: Context, block: ScaleLoss, made: Iterable[ast.Call]) -> Iterator[Decision]:
    return fixed(
        context,
        block,
        RULE,
        made,
        "the optimizer steps inside the scale_loss block, and AMP212 is switched off",
        "move the step behind the block, then run again",
        "this step inside scale_loss used scaled gradients; it moves behind the block and uses the real ones",
    )
