"""Which expressions need parentheses where."""

from __future__ import annotations

import libcst as cst

_TUPLE, _ANY, _IF, _OR, _AND, _NOT, _COMPARE = range(1, 8)
_BIT_OR, _SUM, _PRODUCT, _UNARY, _POWER, _AWAIT, _ATOM = 8, 12, 13, 14, 15, 16, 17

_BINARY: dict[type[cst.BaseBinaryOp], int] = {
    cst.BitOr: _BIT_OR,
    cst.BitXor: 9,
    cst.BitAnd: 10,
    cst.LeftShift: 11,
    cst.RightShift: 11,
    cst.Add: _SUM,
    cst.Subtract: _SUM,
    cst.Power: _POWER,
}


def _strength(expression: cst.BaseExpression) -> int:
    """Return how tightly an expression holds together."""
    match expression:
        case cst.BinaryOperation():
            return _BINARY.get(type(expression.operator), _PRODUCT)
        case cst.BooleanOperation():
            return _AND if isinstance(expression.operator, cst.And) else _OR
        case cst.UnaryOperation():
            return _NOT if isinstance(expression.operator, cst.Not) else _UNARY
        case cst.Comparison():
            return _COMPARE
        case cst.IfExp():
            return _IF
        case cst.Lambda():
            return _ANY
        case cst.Tuple() | cst.Yield():
            return _TUPLE
        case cst.Await():
            return _AWAIT
        case _:
            return _ATOM


def _needed(parent: cst.CSTNode, child: cst.CSTNode, new: cst.BaseExpression) -> int:
    """Return how tightly an expression must hold together in the place of `child`."""
    match parent:
        case cst.Attribute() | cst.Subscript() | cst.Await():
            return _ATOM
        case cst.Call():
            return _ATOM
        case cst.BinaryOperation():
            strength = _BINARY.get(type(parent.operator), _PRODUCT)
            if strength == _POWER:
                return _AWAIT if child is parent.left else _UNARY
            return strength if child is parent.left else strength + 1
        case cst.UnaryOperation():
            return _NOT if isinstance(parent.operator, cst.Not) else _UNARY
        case cst.BooleanOperation():
            strength = _AND if isinstance(parent.operator, cst.And) else _OR
            return strength if child is parent.left else strength + 1
        case cst.Comparison() | cst.ComparisonTarget() | cst.StarredElement():
            return _COMPARE + 1
        case cst.IfExp():
            return _IF if child is parent.orelse else _OR
        case cst.CompFor() | cst.CompIf():
            return _OR
        case cst.FormattedStringExpression():
            return _IF
        case cst.Assign() | cst.AssignTarget() | cst.Expr() | cst.AugAssign():
            return _TUPLE if isinstance(new, (cst.Tuple, cst.Yield)) else _ANY
        case cst.Return() | cst.For():
            return _TUPLE if isinstance(new, cst.Tuple) else _ANY
        case _:
            return _ANY


def parenthesized(expression: cst.BaseExpression) -> cst.BaseExpression:
    """Return an expression in parentheses."""
    return expression.with_changes(
        lpar=[cst.LeftParen(), *expression.lpar], rpar=[*expression.rpar, cst.RightParen()]
    )


def fitted(
    new: cst.BaseExpression, old: cst.BaseExpression, parent: cst.CSTNode, *, touches_word: bool
) -> cst.BaseExpression:
    """Return `new` as it has to be written in the place of `old`, a child of `parent`.

    The parentheses around `old` stay; `touches_word` says that a word stands right beside it.
    """
    own = 1 if isinstance(old, (cst.Tuple, cst.GeneratorExp)) and old.lpar else 0
    left, right = old.lpar[: len(old.lpar) - own], old.rpar[own:]
    if left:
        return new.with_changes(lpar=[*left, *new.lpar], rpar=[*new.rpar, *right])
    if new.lpar:
        return new
    if isinstance(old, cst.GeneratorExp) and not own:
        touches_word = False
    number = isinstance(parent, cst.Attribute) and isinstance(new, cst.BaseNumber)
    if touches_word or number or _strength(new) < _needed(parent, old, new):
        return parenthesized(new)
    return new
