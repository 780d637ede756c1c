"""The truth of an expression under an assumption: true, false, or not known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Truth, Value
from amp_migrate.flow.terms import compared, divided, term

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}
_SINGLETONS = (None, True, False, ...)


def evaluate(node: ast.expr, assumption: Assumption = NOTHING) -> bool | None:
    """Return whether an expression counts as true; None where the assumption does not say.

    The assumption must hold when the whole expression is evaluated: an expression that binds a name on the way
    (`:=` below the top) is not known.
    """
    found = value_of(node, assumption)
    return None if found is None else found.truth


def always(node: ast.expr) -> bool | None:
    """Return the truth of an expression under any assumption; None where it depends."""
    if isinstance(node, ast.Name | ast.Call | ast.Attribute):
        return None
    return evaluate(node)


def value_of(node: ast.expr, assumption: Assumption = NOTHING) -> Value | None:
    """Return what is known of the value of an expression; None for nothing."""
    if isinstance(node, ast.Constant):
        return Known(node.value)
    if isinstance(node, ast.BoolOp):
        return _joined(node, assumption)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        truth = evaluate(node.operand, assumption)
        return None if truth is None else Known(not truth)
    if isinstance(node, ast.Compare):
        truth = _compare(node, assumption)
        return None if truth is None else Truth(truth)
    if isinstance(node, ast.IfExp):
        return _chosen(node, assumption)
    if isinstance(node, ast.NamedExpr):
        return value_of(node.value, assumption)
    if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return _display(node, assumption)
    if isinstance(node, ast.Lambda):
        return Truth(True)
    if isinstance(node, ast.Call) and asks_bool(node):
        truth = evaluate(node.args[0], assumption)
        return None if truth is None else Known(truth)
    found = term(node)
    known = None if found is None else assumption.get(found) or assumption.counts(found)
    return _computed(node, assumption) if known is None else known


def asks_bool(node: ast.Call) -> bool:
    """Return whether a call is `bool` of one expression."""
    named = isinstance(node.func, ast.Name) and node.func.id == "bool"
    return named and len(node.args) == 1 and not node.keywords


def _joined(node: ast.BoolOp, assumption: Assumption) -> Value | None:
    conjunction = isinstance(node.op, ast.And)
    unsure = False
    for part in node.values[:-1]:
        value = value_of(part, assumption)
        if value is None:
            unsure = True
        elif value.truth is not conjunction:
            return Truth(value.truth) if unsure else value
    last = value_of(node.values[-1], assumption)
    if not unsure:
        return last
    if last is not None and last.truth is not conjunction:
        return Truth(last.truth)
    return None


def _chosen(node: ast.IfExp, assumption: Assumption) -> Value | None:
    truth = evaluate(node.test, assumption)
    if truth is not None:
        return value_of(node.body if truth else node.orelse, assumption)
    one, other = value_of(node.body, assumption), value_of(node.orelse, assumption)
    if one is None or other is None:
        return None
    if one == other:
        return one
    return Truth(one.truth) if one.truth == other.truth else None


def _display(
    node: ast.Tuple | ast.List | ast.Set | ast.Dict, assumption: Assumption
) -> Value | None:
    parts = node.values if isinstance(node, ast.Dict) else node.elts
    if isinstance(node, ast.Dict) and None in node.keys:
        return None
    if any(isinstance(part, ast.Starred) for part in parts):
        return None
    values = [value_of(part, assumption) for part in parts]
    if isinstance(node, ast.Tuple) and all(isinstance(value, Known) for value in values):
        return Known(tuple(value.value for value in values if isinstance(value, Known)))
    return Truth(bool(parts))


def _computed(node: ast.expr, assumption: Assumption) -> Value | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand, assumption)
        if isinstance(inner, Known) and isinstance(inner.value, int | float):
            return Known(-inner.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = value_of(node.left, assumption), value_of(node.right, assumption)
        if isinstance(node.op, ast.Mod) and left == Known(0):
            return left
        divides = divided(node)
        stated = None if divides is None else assumption.get(divides)
        if stated is not None:
            return Truth(not stated.truth)
        if isinstance(left, Known) and isinstance(right, Known):
            if isinstance(left.value, int | float) and isinstance(right.value, int | float):
                try:
                    return Known(_ARITHMETIC[type(node.op)](left.value, right.value))
                except (ArithmeticError, ValueError):
                    return None
    return None


def _compare(node: ast.Compare, assumption: Assumption) -> bool | None:
    found: bool | None = True
    for pair in pairs(node):
        truth = _compare_two(pair, assumption)
        if truth is False:
            return False
        found = found and truth
    return found


def pairs(node: ast.Compare) -> list[ast.Compare]:
    """Return the comparisons of two that a chained one makes."""
    if len(node.ops) == 1:
        return [node]
    lefts = [node.left, *node.comparators[:-1]]
    return [
        ast.copy_location(ast.Compare(left, [op], [right]), node)
        for left, op, right in zip(lefts, node.ops, node.comparators, strict=True)
    ]


def _compare_two(node: ast.Compare, assumption: Assumption) -> bool | None:
    found, positive = compared(node)
    stated = None if found is None else assumption.get(found)
    if stated is not None:
        return stated.truth is positive
    if found is not None and found.bound is not None:
        follows = assumption.compared(found.bound)
        if follows is not None:
            return follows is positive
    op = node.ops[0]
    left, right = value_of(node.left, assumption), value_of(node.comparators[0], assumption)
    if isinstance(op, ast.Is | ast.IsNot):
        same = _same(left, right)
        return None if same is None else same is isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn):
        inside = _inside(node, assumption)
        return None if inside is None else inside is isinstance(op, ast.In)
    if isinstance(left, Known) and isinstance(right, Known):
        try:
            return bool(_COMPARE[type(op)](left.value, right.value))
        except TypeError:
            return None
    return None


def _same(left: Value | None, right: Value | None) -> bool | None:
    """Whether two values are one object, where that can be said: against None, True, False or an ellipsis."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Known) and any(one.value is single for single in _SINGLETONS):
            if isinstance(other, Known):
                # what is known to equal 1 may be True
                same = one.value is other.value
                return None if not same and one.value == other.value else same
            if isinstance(other, Truth) and other.truth is not one.truth:
                return False
    return None


def _inside(node: ast.Compare, assumption: Assumption) -> bool | None:
    """Whether a value is in a display: whether it equals one of the elements."""
    container = node.comparators[0]
    if isinstance(container, ast.Constant) and isinstance(container.value, str):
        left = value_of(node.left, assumption)
        if isinstance(left, Known) and isinstance(left.value, str):
            return left.value in container.value
        return None
    if not isinstance(container, ast.Tuple | ast.List | ast.Set):
        return None
    found: bool | None = False
    for element in container.elts:
        if isinstance(element, ast.Starred):
            return None
        pair = ast.Compare(node.left, [ast.Eq()], [element])
        truth = _compare_two(ast.copy_location(pair, node), assumption)
        if truth is True:
            return True
        found = None if truth is None else found
    return found
