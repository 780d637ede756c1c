"""The last, partial accumulation window is reported.

## What it does
Nothing is changed. A finding names the loop and the edit.

## Why
Where the number of micro-batches is no multiple of k, gradients of the last ones are left behind: they are
dropped, or leak into the next epoch. Dropping or stepping them is a choice.

## Example
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    if (i + 1) % accumulation_steps == 0 or (i + 1) == len(loader):
        optimizer.step()

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.reads.zeroing import begins_empty, lost_windows, windows
from amp_migrate.placement.windows.counting import ends_whole, holds_one_where_scaled, restarts
from amp_migrate.placement.windows.ending import Rest, rest
from amp_migrate.plan.model import Decision, Status
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.training.steps import Step, asked

RULE = Rule(
    "AMP203", "the last, partial accumulation window is not stepped", Safety.REPORT, order=95
)
_OVERFLOWS = ". Under Apex an overflow in them skipped the next step as well, now it does not"
_TOLD = {
    Rest.STAYS: (
        "of an epoch are not stepped there: their gradients are part of the next epoch's first step, as under Apex",
        "step them as well at the end of the loop, or call {}.zero_grad() behind it, if that was not meant; "
        "either changes the training",
    ),
    Rest.CLEARED: (
        "of an epoch are not stepped: their gradients are cleared before the next backward",
        "step them as well at the end of the loop, if that was not meant, which changes the training",
    ),
    Rest.UNUSED: (
        "are not stepped, and no backward follows, as under Apex",
        "step them as well at the end of the loop, if that was not meant, which changes the training",
    ),
}


def decide(context: Context) -> Iterator[Decision]:
    """Report accumulation boundaries that never step the rest."""
    yield from _decided(context, _OVERFLOWS)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """Report the same of a program that stays with Apex, where nothing changes."""
    yield from _decided(context, "")


def _decided(context: Context, overflows: str) -> Iterator[Decision]:
    if not context.settings.enabled(RULE.code):
        return
    seen: set[Fork] = set()
    lost = lost_windows(context.unit, context.settings.enabled("AMP201"))
    for window in windows(context.unit):
        step, backward, limit = window
        if limit in seen:
            continue
        seen.add(limit)
        if isinstance(question(limit), ast.BoolOp) or len(context.unit.steps_of(step.function)) > 1:
            continue
        here = context.unit, step.function, limit
        if not restarts(*here) or ends_whole(*here):
            continue
        if backward.node in lost:
            continue
        test = asked(step.tree, limit)
        left = rest(*here)
        left = Rest.CLEARED if begins_empty(context.unit, window) else left
        told, advice = _TOLD[left]
        more = ""
        if left is Rest.CLEARED and overflows and not holds_one_where_scaled(*here):
            more = overflows + _kept_in_masters(context, step)
        yield decision(
            RULE,
            Status.NOTE,
            step.module,
            limit,
            f"micro-batches behind the last `{test}` {told}{more}",
            advice=advice.format(step.text),
        )


def _kept_in_masters(context: Context, step: Step) -> str:
    """Return what to say where networks alone are cleared: O2 kept gradients of master weights, which only its optimizer cleared."""
    options = [context.unit.options[site] for site in context.unit.of(Kind.INITIALIZE)]
    if not any("O2" in each.levels for each in options):
        return ""
    optimizers_of = program_of(context.unit.project).training.objects.optimizers_of
    cleared = [
        call.func.value
        for call in step.function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "zero_grad"
    ]
    if not cleared or any(optimizers_of(step.module, each) for each in cleared):
        return ""
    text = step.tree.segment(cleared[0])
    return (
        f". At O2 Apex kept them in its master weights, which `{text}.zero_grad()` did not clear: they were part of the next "
        "epoch's first step"
    )
