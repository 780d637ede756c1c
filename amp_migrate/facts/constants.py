"""Constants of the source: None, truth values and strings."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

from amp_migrate.facts.below import with_parts

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def is_none(node: ast.AST | None) -> bool:
    """Tell whether an expression is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def is_true(node: ast.AST | None) -> bool:
    """Tell whether an expression is the constant True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.AST | None) -> bool:
    """Tell whether an expression is the constant False."""
    return isinstance(node, ast.Constant) and node.value is False


def number(node: ast.AST | None) -> float | None:
    """Return the number that an expression of numbers is, which may be spelt as strings; None for any other one."""
    try:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return float(node.value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = number(node.left), number(node.right)
            if left is not None and right is not None:
                return float(_OPERATORS[type(node.op)](left, right))
    except (ArithmeticError, TypeError, ValueError):
        return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return number(node.args[0]) if node.func.id in ("float", "int") else None
    return None


def string(node: ast.AST | None) -> str | None:
    """Return the string that an expression is; None for any other one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def string_start(node: ast.AST | None) -> str:
    """Return how a string that an expression gives starts, as far as it is constant: `run_` for ``f"run_{mode}"``."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return string_start(node.values[0]) if node.values else ""
    if isinstance(node, ast.BinOp):
        start = string_start(node.left)
        return start.partition("%")[0] if isinstance(node.op, ast.Mod) else start
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return string_start(node.func.value).partition("{")[0]
    return ""


def filled(node: ast.expr, constant: Callable[[ast.expr], ast.Constant | None]) -> ast.expr:
    """Return an expression with the constants that its names and attributes stand for in their place."""
    known: dict[ast.AST, ast.expr] = {}
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
            found = constant(part)
            known |= {part: found} if found is not None else {}
        else:
            waiting += ast.iter_child_nodes(part)
    return with_parts(node, known) if known else node


def may_be(node: ast.AST, text: str) -> bool:
    """Tell whether a string expression may give `text`, by the parts of it that are constant."""
    return re.fullmatch(_pattern(node), text) is not None


def _pattern(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return re.escape(node.value) if isinstance(node.value, str) else ".*"
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_pattern, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _pattern(node.left) + _pattern(node.right)
    return re.escape(string_start(node)) + ".*"
