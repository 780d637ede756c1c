"""What must hold for a test to come out true, or false: its parts, each by itself and in one spelling."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

Atom = tuple[str, bool]
"""The text of a test that asks one thing, and how it comes out."""

_POSITIVE: dict[type[ast.cmpop], ast.cmpop] = {ast.NotEq: ast.Eq(), ast.IsNot: ast.Is()}


def parts_of(test: ast.expr, truth: bool) -> Iterator[Atom]:
    """Yield what must hold for a test to come out true, or false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from parts_of(test.operand, not truth)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        for part in test.values:
            yield from parts_of(part, truth)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In | ast.NotIn):
        key = "key" if isinstance(test.left, ast.Constant) else ast.unparse(test.left)
        text = " in ".join((key, *map(ast.unparse, test.comparators)))  # keys may change
        yield text, truth is isinstance(test.ops[0], ast.In)
    elif isinstance(test, ast.Compare) and [*map(type, test.ops)] in ([ast.NotEq], [ast.IsNot]):
        asked = ast.Compare(test.left, [_POSITIVE[type(test.ops[0])]], test.comparators)
        yield ast.unparse(asked), not truth
    else:
        yield ast.unparse(test), truth


def without_implied(found: set[Atom]) -> frozenset[Atom]:
    """Return the parts without those that follow: what equals one constant equals no other one."""
    equal = dict(asked for text, truth in found if truth and (asked := _equality(text)))
    return frozenset(
        (text, truth)
        for text, truth in found
        if truth
        or not equal
        or (asked := _equality(text)) is None
        or equal.get(asked[0], asked[1]) == asked[1]
    )


@lru_cache(maxsize=1 << 12)
def _equality(text: str) -> tuple[str, object] | None:
    """Return what a part compares with a text, and that text; None for any other one."""
    if "==" not in text:
        return None
    try:
        test = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(test, ast.Compare) or [*map(type, test.ops)] != [ast.Eq]:
        return None
    value = test.comparators[0]
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return None
    return ast.unparse(test.left), value.value
