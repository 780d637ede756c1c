"""Where a program trains without AMP, though it has it for other runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.availability.condition import reduce
from amp_migrate.placement.steps.steps import Backward
from amp_migrate.rules.base import Context
from amp_migrate.unit.order import in_branch


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
    facts = dict(_facts(ast.parse(condition.text, mode="eval").body, holds=True))
    for up in around:
        value = reduce(up.test, lambda node: facts.get(ast.dump(node)), tree.segment).value
        if value is not None and value is not in_branch(tree, backward.node, up.body):
            return True
    return False


def _facts(node: ast.expr, *, holds: bool) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a condition that must hold, or must not, where the whole does."""
    yield ast.dump(node), holds
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from _facts(node.operand, holds=not holds)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And if holds else ast.Or):
        for part in node.values:
            yield from _facts(part, holds=holds)
