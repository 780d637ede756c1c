"""Objects that hold the scaler, and that a function asks whether they are there at all."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs, path, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function
from amp_migrate.project.order import dominates, in_branch
from amp_migrate.unit.cannot import Cannot

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def refuse_missing(function: Function, node: ast.AST, text: str) -> None:
    """Raise `Cannot` where the object that holds the scaler may be None: its function asks, and not above the node."""
    holder = text.rpartition(".")[0]
    tree = function.module.tree
    asked = [
        up
        for up in walk(function.scope)
        if holder and any(_there(part, holder) is not None for part in _questions(up))
    ]
    if asked and not any(_settles(tree, up, holder, node) for up in asked):
        raise Cannot(
            "AMP901",
            function.module,
            node,
            f"this needs the GradScaler of `{holder}`, which may be None here",
            f"ask for `{holder}` above this line and leave where it is None, then run again",
        )


def _questions(node: ast.AST) -> list[ast.expr]:
    """Return the parts of the test of an `if` or a conditional expression that `and`, `or` and `not` join."""
    parts = [node.test] if isinstance(node, ast.If | ast.IfExp) else []
    for part in parts:
        if isinstance(part, ast.BoolOp):
            parts += part.values
        elif isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
            parts.append(part.operand)
    return parts


def _there(test: ast.expr, holder: str) -> bool | None:
    """Return the answer of a test that only an object which is there gives; None where neither answer tells."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = _there(test.operand, holder)
        return None if found is None else not found
    if isinstance(test, ast.BoolOp):
        truth = isinstance(test.op, ast.And)
        return truth if truth in [_there(part, holder) for part in test.values] else None
    if path(test) == holder:
        return True
    if not isinstance(test, ast.Compare) or path(test.left) != holder or len(test.ops) != 1:
        return None
    other = test.comparators[0]
    if not isinstance(other, ast.Constant) or other.value is not None:
        return None
    return isinstance(test.ops[0], ast.IsNot | ast.NotEq)


def _settles(tree: Tree, test: ast.AST, holder: str, node: ast.AST) -> bool:
    """Tell whether an object is there at a node, as a test says."""
    there = _there(test.test, holder) if isinstance(test, ast.If) else None
    if not isinstance(test, ast.If) or there is None:
        return False
    branch, other = (test.body, test.orelse) if there else (test.orelse, test.body)
    if in_branch(tree, node, branch) or node is test:
        return True
    left = bool(other) and (isinstance(other[-1], _LEAVES) or _makes(other, holder))
    return left and not in_branch(tree, node, other) and dominates(tree, test, node)


def _makes(block: list[ast.stmt], holder: str) -> bool:
    """Tell whether a block that runs where an object is missing makes it, by itself or by a method beside it."""
    owner = holder.rpartition(".")[0]
    calls = [part.func for stmt in block for part in walk(stmt) if isinstance(part, ast.Call)]
    beside = [func.value for func in calls if isinstance(func, ast.Attribute)]
    return any(holder in defs(stmt) for stmt in block) or (
        bool(owner) and any(path(receiver) == owner for receiver in beside)
    )
