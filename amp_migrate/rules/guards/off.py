"""Where a program trains without AMP, though it has it for other runs."""

from __future__ import annotations

import ast

from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project.order import in_branch
from amp_migrate.rules.base import Context
from amp_migrate.training.steps import Backward


def runs_without(context: Context, backward: Backward) -> bool:
    """Tell whether a backward stands on the side of a test to which AMP being on does not come."""
    condition = context.casts.condition
    tree = backward.module.tree
    around = [up for up in tree.ancestors(backward.node) if isinstance(up, ast.If)]
    if not condition.text or not around:
        return False
    statement = tree.statement(backward.node)
    if context.casts.enabled(backward.function, statement, training=True) != condition.text:
        return False
    on = refine(NOTHING, ast.parse(condition.text, mode="eval").body, truth=True) or NOTHING
    for up in around:
        value = evaluate(up.test, on)
        if value is not None and value is not in_branch(tree, backward.node, up.body):
            return True
    return False
