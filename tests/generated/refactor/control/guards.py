"""Turns an `if` at the end of a loop or function into a guard that leaves it, and a guard into an `if`."""

from __future__ import annotations

from random import Random

import libcst as cst

from generated.refactor.control.places import Place, any_of, negated, only, somewhere
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _guard(place: Place, rng: Random) -> Project | None:
    """Turn `if c: A else: B` at the end into `if c: A; continue` and B, or `if not c: continue` and A."""
    node, around = place.statement, place.tail
    if not isinstance(node, cst.If) or around is None:
        return None
    leave = "return" if isinstance(around, cst.FunctionDef) else "continue"
    test, yes = place.source(node.test), place.suite(node.body)
    first = " ".join(yes.split())
    if node.orelse is None:
        if first in ("continue", "return", "pass", "break"):
            return None
        text = f"if {negated(place, node.test)}:\n{place.indented(leave)}\n{yes}"
    else:
        no = _other(place, node.orelse)
        if rng.random() < 0.5 and isinstance(node.orelse, cst.Else):
            test, yes, no = negated(place, node.test), no, yes
        own = "" if _leaves(yes) else f"{leave}\n"
        text = f"if {test}:\n{place.indented(yes + own)}{no}"
    return place.replaced(place.lead() + text)


def _other(place: Place, orelse: cst.If | cst.Else) -> str:
    if isinstance(orelse, cst.If):
        return place.lead(orelse) + place.bare(orelse)
    return place.source(orelse.leading_lines) + place.suite(orelse.body)


def _leaves(text: str) -> bool:
    last = text.rstrip("\n").rpartition("\n")[2]
    return last.split(" ")[0] in ("continue", "return", "raise", "break")


def _around_rest(place: Place, rng: Random) -> Project | None:
    """Turn `if c: continue` or `if c: return` into an `if` around the rest of the loop or function."""
    node, around = place.statement, place.block.inside[-1] if place.block.inside else None
    if not isinstance(node, cst.If) or node.orelse is not None or not place.rest:
        return None
    loop = isinstance(around, cst.For | cst.While)
    if not (loop or isinstance(around, cst.FunctionDef)) or around.body is not place.block.home:
        return None
    body = node.body.body
    jump = only(body[-1]) if isinstance(node.body, cst.IndentedBlock) else body[-1]
    rest = place.source(place.rest)
    if any(isinstance(s, cst.FunctionDef | cst.ClassDef) for s in place.rest):
        return None
    before = place.suite(node.body)[: -len(_last(place, node.body))]
    if isinstance(jump, cst.Continue) if loop else _returns_nothing(jump):
        if before.strip():
            text = f"if {place.source(node.test)}:\n{place.indented(before)}else:\n"
        else:
            text = f"if {negated(place, node.test)}:\n"
    elif isinstance(jump, cst.Return) and not loop:
        whole = place.suite(node.body)
        text = f"if {place.source(node.test)}:\n{place.indented(whole)}else:\n"
    else:
        return None
    return place.replaced(place.lead() + text + place.indented(rest), 1 + len(place.rest))


def _last(place: Place, suite: cst.BaseSuite) -> str:
    """Return the text of the last statement of a suite."""
    if isinstance(suite, cst.IndentedBlock):
        return place.source(suite.body[-1]) + place.source(suite.footer)
    return place.suite(suite)


def _returns_nothing(jump: object) -> bool:
    return isinstance(jump, cst.Return) and jump.value is None


def _early(place: Place, rng: Random) -> Project | None:
    """Turn `if c: A else: B` before a last `return` into two returns."""
    node = place.statement
    if not isinstance(node, cst.If) or len(place.rest) != 1 or isinstance(node.orelse, cst.If):
        return None
    last = only(place.rest[0])
    if not isinstance(last, cst.Return) or place.block.function is None:
        return None
    yes, end = place.suite(node.body), place.source(place.rest[0])
    no = _other(place, node.orelse) if node.orelse else ""
    if _leaves(yes) or (no and _leaves(no)):
        return None
    text = f"if {place.source(node.test)}:\n{place.indented(yes + end)}{no}{end}"
    return place.replaced(place.lead() + text, 2)


_GUARDS = any_of(_guard, _early)

REFACTORINGS = (
    Refactoring("a last if becomes a guard", "control", somewhere(_GUARDS, cst.If)),
    Refactoring(
        "a guard becomes an if around the rest", "control", somewhere(_around_rest, cst.If)
    ),
)
