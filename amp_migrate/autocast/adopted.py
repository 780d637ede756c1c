"""Losses that the source computes under an autocast of its own, beside Apex: what the finding of a hidden forward asks for."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs, uses
from amp_migrate.project import Function, Project
from amp_migrate.project.order import dominates, inside
from amp_migrate.project.rounds import last_before
from amp_migrate.training.contexts import enters_autocast


def adopted(
    project: Project, function: Function, loss: ast.expr, backward: ast.AST
) -> ast.With | None:
    """Return the last autocast that assigns the loss of a backward behind it; None where there is none."""
    tree = function.module.tree
    found = [
        node
        for node in function.own_nodes
        if isinstance(node, ast.With)
        and enters_autocast(project, function.module, node)
        and not inside(tree, backward, node)
        and dominates(tree, node, backward)
        and uses(loss) & {name for stmt in node.body for name in defs(stmt)}
    ]
    last = last_before(project, function, found, backward)
    return last[-1] if last else None
