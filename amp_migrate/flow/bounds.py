"""What comparisons with numbers say of each other: what is at least 0 is not -1."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq,
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_DENIED = {ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt}


@dataclass(frozen=True)
class Bound:
    """A comparison of a term, by its spelling, with a number."""

    text: str
    op: type[ast.cmpop]
    number: float


Stated = tuple[Bound, bool]
"""A comparison and how it came out."""


def bound(text: str, op: type[ast.cmpop], number: float, *, mirrored: bool = False) -> Bound | None:
    """Return the comparison of a term with a number, which stands on the left where it is mirrored; None for another operator."""
    if op not in _MIRRORED:
        return None
    return Bound(text, _MIRRORED[op] if mirrored else op, number)


def follows(asked: Bound, stated: Iterable[Stated]) -> bool | None:
    """Return how a comparison comes out where others of the same term came out as stated; None where that is open.

    What is no number compares with none, and so does NaN: that nothing held of a term makes nothing else hold.
    """
    known = tuple(stated)
    if not known:
        return None
    if _empty((*known, (asked, True))):
        return False
    if any(held for _, held in known) and _empty((*known, (asked, False))):
        return True
    return None


def _empty(stated: Iterable[Stated]) -> bool:
    """Tell whether no number fits."""
    low, high = (-inf, False), (inf, False)
    excluded: set[float] = set()
    for one, held in stated:
        if one.op is ast.Eq and not held:
            excluded.add(one.number)
            continue
        op = one.op if held else _DENIED[one.op]
        if op in (ast.Eq, ast.Gt, ast.GtE):
            low = max(low, (one.number, op is ast.Gt))
        if op in (ast.Eq, ast.Lt, ast.LtE):
            high = min(high, (one.number, op is not ast.Lt))
    (least, above), (most, reached) = low, high
    if least == most:
        return above or not reached or least in excluded
    return least > most
