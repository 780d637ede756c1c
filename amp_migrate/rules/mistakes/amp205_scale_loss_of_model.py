"""`model = amp.scale_loss(model)` goes.

## What it does
Deletes the statement.

## Why
`amp.scale_loss` takes a loss and returns a context manager; applied to a model it breaks the program.

## Example
    model = amp.scale_loss(model)

## Use instead
    (nothing: the loss is scaled where it is backpropagated)

## Safety
Changes behaviour: the program runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import path
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, Status
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule("AMP205", "scale_loss applied to a model goes", Safety.CHANGES, order=5)


def decide(context: Context) -> Iterator[Decision]:
    """Delete the misplaced scale_loss statements of the unit."""
    for site in context.misplaced:
        if not context.settings.enabled(RULE.code):
            raise Cannot(
                RULE.code, site.module, site.node, "amp.scale_loss is applied to a model, and AMP205 is switched off",
                "delete the statement, then run again",
            )  # fmt: skip
        message = "amp.scale_loss takes a loss, not a model: the statement is deleted"
        edit = Drop(site.module.tree.span(site.statement))
        yield decision(RULE, Status.FIXED, site.module, site.node, message, [edit])


def is_misplaced(site: Site) -> bool:
    """Tell whether a scale_loss is assigned to the very thing that it is given, as ``m = amp.scale_loss(m)``."""
    parent = site.module.tree.parent(site.node)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or len(site.call.args) != 1:
        return False
    target = path(parent.targets[0])
    return target is not None and target == path(site.call.args[0]) and not site.call.keywords
