"""What is private to Apex goes where nothing reads it.

## What it does
Deletes `self.x = amp.scaler.LossScaler(...)` where nothing in the project reads `x`, with the test that only chose
its scale. A variable that is only given to functions which never look at it becomes None. A statement that only prints
or logs something private to Apex, as `apex.amp.__version__.VERSION`, goes as well.

## Why
The class no longer exists, and a loss scaler on its own does nothing: Apex made those that `amp.scale_loss` uses
in `amp.initialize`.

## Example
    if opt_level == "O0":
        self.penalty_scaler = amp.scaler.LossScaler(1)
    else:
        self.penalty_scaler = amp.scaler.LossScaler(2**14)

## Use instead
    (nothing)

## Safety
Faithful. One that something reads, as to scale by hand, is left, with the program's Apex code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.apex.unread import is_given_on
from amp_migrate.plan.model import Decision, Drop, Edit, ReplaceExpression, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision

RULE = Rule("AMP121", "what is private to Apex goes where nothing reads it", Safety.FAITHFUL)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Drop the loss scalers of a file that nothing reads, and what only tells of Apex."""
    if context.keeps_guards:
        return
    tree = context.module.tree
    for site in context.of(Kind.UNREAD):
        edit: Edit = Drop(tree.span(site.statement))
        message = "nothing reads this loss scaler, and it goes"
        if not isinstance(site.node, ast.Call):
            message = f"this only tells of {site.name}, and goes"
        elif is_given_on(context.module, site.call):
            edit = ReplaceExpression(site.span, "None")
            message = "nothing looks at this loss scaler, and None is given in its place"
        yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])
