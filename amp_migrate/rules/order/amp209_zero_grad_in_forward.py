"""`zero_grad` between forward and loss moves before the forward.

## What it does
Moves `zero_grad()` out of the statements that autocast will cover.

## Why
Only forward and loss belong under autocast. The forward does not read gradients, so zeroing them earlier
changes nothing. Where a `continue` or the like may leave them as they are first, it stays where it is.

## Example
    output = model(images)
    optimizer.zero_grad()
    loss = criterion(output, labels)

## Use instead
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        output = model(images)
        loss = criterion(output, labels)

## Safety
Changes the order of statements, not the training: the same bits result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.autocast.slicing.effects import effects_of
from amp_migrate.autocast.slicing.places import touches
from amp_migrate.facts.paths import walk
from amp_migrate.placement.reads.zeroing import every_micro_batch, in_region
from amp_migrate.plan.model import Decision, Move, Status
from amp_migrate.project.order import inside, loop_of, position
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.region import Region

RULE = Rule(
    "AMP209",
    "zero_grad between forward and loss moves before the forward",
    Safety.CHANGES,
    order=18,
)


def decide(context: Context) -> Iterator[Decision]:
    """Move zero_grad statements out of the regions."""
    if not context.settings.enabled(RULE.code) or context.casts.never:
        return
    moved = {z.statement for z in every_micro_batch(context.unit)}
    for region in context.unit.regions:
        for stmt in in_region(region):
            if stmt in moved and context.settings.enabled("AMP201"):
                continue
            if _is_bound_between(context, region, stmt) or _may_be_left(region, stmt):
                continue
            tree = region.module.tree
            edit = Move(tree.span(stmt), tree.span(region.first), after=False)
            message = "zero_grad moves before the forward, out of the autocast region"
            yield decision(RULE, Status.FIXED, region.module, stmt, message, [edit])


def _is_bound_between(context: Context, region: Region, stmt: ast.stmt) -> bool:
    """Tell whether the region gives what a statement clears a new value before that: it stays behind it."""
    tree, effects = region.module.tree, effects_of(context.unit.project)
    needed = effects.reads(region.function, stmt)
    block = tree.block(stmt)
    between = block[position(tree, region.first) : position(tree, stmt)]
    return any(touches(effects.writes(region.function, other), needed) for other in between)


def _may_be_left(region: Region, stmt: ast.stmt) -> bool:
    """Tell whether a way out of the region leaves what a statement clears as it is: ``if loss.isnan(): continue``."""
    tree = region.module.tree
    block = tree.block(stmt)
    between = block[position(tree, region.first) : position(tree, stmt)]
    jumps = (node for other in between for node in walk(other))
    return any(
        isinstance(node, ast.Return)
        or (
            isinstance(node, ast.Continue | ast.Break)
            and (loop := loop_of(tree, node)) is not None
            and inside(tree, stmt, loop)
        )
        for node in jumps
    )
