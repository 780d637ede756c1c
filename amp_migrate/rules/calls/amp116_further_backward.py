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
Faithful: the accumulated gradients are the same bits, as long as they are no fp16 ones that are too small or overflow. A note says so
where Apex did not scale a loss while AMP was on: fp16 keeps its small gradients now, and steps whose gradients overflow are skipped.
A backward whose gradients are cleared before scaled ones join them stays plain. Where weights are written behind it, a note says
that Apex kept its fp16 copies of the old ones until the next `amp.scale_loss` ended.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.backwards.copies import outdated
from amp_migrate.placement.backwards.unscaled import runs_on
from amp_migrate.plan.cannot import spoken
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.amp103_scale_loss import late
from amp_migrate.training.steps import Backward

RULE = Rule("AMP116", "further backward passes are scaled as well", Safety.FAITHFUL, order=16)


def decide(context: Context) -> Iterator[Decision]:
    """Scale the plain backward passes of a unit that has scale_loss blocks."""
    if not any(b.scaled for b in context.unit.backwards):
        return
    branches = context.branches
    gone = [stmt for prefix in branches.prefixes.values() for stmt in prefix.node.orelse]
    early = [c for c in branches.collapses.values() if c.kept == "behind"]
    gone += [stmt for collapse in early for stmt in collapse.gone()]
    beginning = {node for stmt in gone for node in ast.walk(stmt)}
    for backward in context.unit.backwards:
        if not backward.scaled and backward.node in beginning:
            yield from _doubted(context, backward)
        if backward.scaled or context.is_gone(backward.node):
            continue
        if backward in context.unit.unscaled:
            yield late(backward.module, backward.node)
        else:
            yield scaled(context, RULE, backward, Status.ROUTINE)
            yield from _doubted(context, backward)
    for backward in context.unit.beside:
        yield from _renewed(context, backward)


def _renewed(context: Context, backward: Backward) -> Iterator[Decision]:
    """Say of a backward that stays plain that Apex computed on with the weights from before a write behind it."""
    write = outdated(context.unit, backward)
    if write is not None:
        message = (
            f"line {write.lineno} writes weights, and Apex went on with fp16 copies of the old ones until "
            "the next amp.scale_loss ended: the forward passes up to there see the new weights now"
        )
        yield decision(RULE, Status.NOTE, backward.module, backward.node, message)


def _doubted(context: Context, backward: Backward) -> Iterator[Decision]:
    """Say what differs of a loss that Apex did not scale with AMP on: beside others, or where a flag is set anew."""
    runs = partial(runs_before, context.unit.project, backward.function)
    scaling = [b.node for b in context.unit.backwards_of(backward.function) if b.scaled]
    instead = any(not runs(n, backward.node) and not runs(backward.node, n) for n in scaling)
    line = context.casts.set_before(backward.function, backward.node) if instead else None
    since = f" once line {line} had set the flag anew" if line is not None else ""
    stale = ""
    again = next((c for c in context.creations.values() if c.anew), None) if instead else None
    if again is not None and not since:
        name = spoken(again.site.function)
        since = f" where {name} had run again without amp.initialize"
        stale = (
            ", on gradients of fp16 copies of the first weights that only amp.scale_loss renewed"
        )
    if since or _runs_on(context, backward, instead):
        message = (
            f"Apex did not scale this loss{since}: small gradients were lost, infinite ones "
            f"stepped{stale}; the GradScaler, still on, scales it and skips a step whose gradients overflow"
        )
        if not stale and not since and (when := _has_masters(context)) is not None:
            message += (
                f"; {when} it came to the fp16 gradients of the network alone, which steps did not "
                "see and the next amp.scale_loss dropped: it trains now"
            )
        yield decision(RULE, Status.NOTE, backward.module, backward.node, message)


def _has_masters(context: Context) -> str | None:
    """Return when, in words, steps go by fp32 copies of fp16 weights that only amp.scale_loss hands gradients; None for never."""
    sites = context.unit.of(Kind.INITIALIZE)
    levels = [context.unit.options[site].levels for site in sites]
    if not any("O2" in each for each in levels):
        return None
    return "at O2" if any(each != {"O2"} for each in levels) else "but as the level is O2,"


def _runs_on(context: Context, backward: Backward, instead: bool) -> bool:
    """Tell whether a backward runs with AMP on, as far as it is known, and casts have a part in its loss."""
    return runs_on(context.unit, context.casts.condition, backward, instead=instead) and bool(
        context.unit.losses.networks(backward.function, backward.loss, cast=True)
    )


def scaled(context: Context, rule: Rule, backward: Backward, status: Status) -> Decision:
    """Make the decision that scales a plain backward."""
    tree = backward.module.tree
    scaler = context.scaler(backward.function, backward.node)
    loss = context.hoisted(backward.loss) or tree.segment(backward.loss)
    text = f"{scaler}.scale({loss}).backward"
    edit = ReplaceExpression(tree.span(backward.node.func), text)  # type: ignore[union-attr]
    return decision(rule, status, backward.module, backward.node, f"becomes `{text}()`", [edit])
