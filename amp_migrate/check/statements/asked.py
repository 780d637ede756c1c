"""What must hold for a test to come out true, or false: its parts, each by itself and in one spelling."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine

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
    """Return the parts without those that follow from what else holds, as from one constant that no other one is met."""
    return _told_alone(frozenset(found)) if len(found) > 1 else frozenset(found)


@lru_cache(maxsize=1 << 12)
def _told_alone(found: frozenset[Atom]) -> frozenset[Atom]:
    left = sorted(found, key=lambda atom: (-len(atom[0]), atom))
    for atom in list(left):
        others = [other for other in left if other != atom]
        if _follows(atom, others):
            left = others
    return frozenset(left)


def _follows(atom: Atom, others: list[Atom]) -> bool:
    test = _parsed(atom[0])
    known: Assumption | None = NOTHING
    for text, truth in others:
        other = _parsed(text)
        if other is not None and known is not None:
            known = refine(known, other, truth)
    return test is not None and known is not None and evaluate(test, known) is atom[1]


@lru_cache(maxsize=1 << 12)
def _parsed(text: str) -> ast.expr | None:
    """Return a part of a test; None for a loop."""
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
