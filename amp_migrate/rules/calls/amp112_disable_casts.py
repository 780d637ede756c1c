"""`amp.disable_casts()` becomes an autocast that is off.

## What it does
Writes `torch.cuda.amp.autocast(enabled=False)` in its place.

## Why
It is the native way to run a part of the forward pass without casts.

## Example
    with amp.disable_casts():
        y = layer(x.float())

## Use instead
    with torch.cuda.amp.autocast(enabled=False):
        y = layer(x.float())

## Safety
Faithful. Inputs that are already fp16 stay fp16 under both: cast them with `.float()` where that matters.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.plan.model import Decision, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision

RULE = Rule("AMP112", "amp.disable_casts becomes autocast(enabled=False)", Safety.FAITHFUL)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Replace the disable_casts of one file."""
    if context.keeps_guards:
        return
    for site in context.of(Kind.DISABLE_CASTS):
        text = context.spelling.autocast("False")
        edit = ReplaceExpression(site.span, text)
        yield decision(RULE, Status.MIGRATED, site.module, site.node, f"becomes `{text}`", [edit])
