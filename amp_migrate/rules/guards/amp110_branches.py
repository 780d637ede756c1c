"""Branches that tested for Apex and now do the same collapse into one.

## What it does
Keeps one of two branches that are the same code natively (`with amp.scale_loss...` against
`loss.backward()`, clipping `master_params` against `model.parameters()`). Where the `else` of an
accumulation boundary only repeats the backward, the backward moves before the `if`. A test whose body does that and
returns goes where the same stands behind it.

## Why
`GradScaler(enabled=False)` passes everything through, so one path serves both settings.

## Example
    if args.fp16:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
    else:
        loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Faithful: the scaler is enabled exactly where the test was true. Where both branches clip, the norm is taken
over the parameters that the plain branch named, so its last bits may differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision, Drop, DropBlock, Edit, Hoist, Move, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule("AMP110", "branches that tested for Apex collapse", Safety.FAITHFUL, order=12)


def decide(context: Context) -> Iterator[Decision]:
    """Collapse the branches that `Branches` found alike."""
    for collapse in context.branches.collapses.values():
        if context.is_gone(collapse.node):
            continue
        module = collapse.site.module
        span = module.tree.span(collapse.node)
        edit = Drop(span) if collapse.kept == "behind" else Hoist(span, collapse.kept)
        message = "both branches are the same code now"
        yield decision(RULE, Status.ROUTINE, module, collapse.node, message, [edit])
    for prefix in context.branches.prefixes.values():
        if context.is_gone(prefix.node):
            continue
        module = prefix.site.module
        span = module.tree.span(prefix.node)
        edits: list[Edit] = [Move(module.tree.span(s), span, after=False) for s in prefix.moved]
        edits.append(DropBlock(span))
        message = "what both branches begin with moves before the test"
        yield decision(RULE, Status.ROUTINE, module, prefix.node, message, edits)
