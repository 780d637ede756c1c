"""Objects that hold the scaler, and that a function asks whether they are there at all."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function
from amp_migrate.project.order import dominates, in_branch
from amp_migrate.unit.cannot import Cannot

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def refuse_missing(function: Function, node: ast.AST, text: str) -> None:
    """Raise `Cannot` where the object that holds the scaler may be None: its function asks, and not above the node."""
    holder = text.rpartition(".")[0]
    tree = function.module.tree
    asked = [up for up in walk(function.scope) if holder and _asks(up, holder) is not None]
    if asked and not any(_settles(tree, up, holder, node) for up in asked):
        raise Cannot(
            "AMP901",
            function.module,
            node,
            f"this needs the GradScaler of `{holder}`, which may be None here",
            f"ask for `{holder}` above this line and leave where it is None, then run again",
        )


def _asks(node: ast.AST, holder: str) -> bool | None:
    """Tell of an `if` or a conditional expression whether its body runs where an object is there; None for other nodes."""
    if not isinstance(node, ast.If | ast.IfExp):
        return None
    test, positive = node.test, True
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, positive = test.operand, not positive
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and positive:
        found = [_asks(ast.If(part, [], []), holder) for part in test.values]
        return True if True in found else None
    if path(test) == holder:
        return positive
    if not isinstance(test, ast.Compare) or path(test.left) != holder or len(test.ops) != 1:
        return None
    other = test.comparators[0]
    if not isinstance(other, ast.Constant) or other.value is not None:
        return None
    return positive is isinstance(test.ops[0], ast.IsNot | ast.NotEq)


def _settles(tree: Tree, test: ast.AST, holder: str, node: ast.AST) -> bool:
    """Tell whether an object is there at a node, as a test says."""
    there = _asks(test, holder)
    if not isinstance(test, ast.If):
        return False
    branch, other = (test.body, test.orelse) if there else (test.orelse, test.body)
    if in_branch(tree, node, branch) or node is test:
        return True
    left = bool(other) and isinstance(other[-1], _LEAVES)
    return left and not in_branch(tree, node, other) and dominates(tree, test, node)
