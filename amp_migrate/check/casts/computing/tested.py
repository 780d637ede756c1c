"""Sums of which a program only asks whether they are zero, or which sign they have: no type of their result changes that."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import number
from amp_migrate.project import Module

_OTHERS = frozenset({None, "dtype", "out"})
_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_only_tested(module: Module, node: ast.AST) -> bool:
    """Tell whether a node adds up, and what it gives is only compared with zero, or asked for its truth.

    torch adds up fp16 in fp32: what it rounds to fp16 then is zero, or of a sign, where it was so in fp32.
    """
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr != "sum" or any(k.arg in _OTHERS for k in node.keywords):
        return False
    return _is_tested(module, node)


def _is_tested(module: Module, node: ast.expr) -> bool:
    """Tell whether a number is only compared with zero, or asked for its truth."""
    up = module.tree.parent(node)
    if isinstance(up, ast.Attribute) and up.attr == "item":
        call = module.tree.parent(up)
        return isinstance(call, ast.Call) and call.func is up and _is_tested(module, call)
    if isinstance(up, ast.Compare):
        other = up.comparators[0] if up.left is node else up.left
        one = len(up.ops) == 1 and isinstance(up.ops[0], _ORDERS)
        return one and number(other) == 0
    if isinstance(up, ast.If | ast.While | ast.IfExp | ast.Assert):
        return up.test is node
    if isinstance(up, ast.UnaryOp):
        return isinstance(up.op, ast.Not)
    return isinstance(up, ast.BoolOp) and _is_tested(module, up)
