"""Writes an `if` on one subject as a `match`."""

from __future__ import annotations

import sys
from random import Random

import libcst as cst

from generated.refactor.control.places import Place, somewhere
from generated.refactor.project import Project
from generated.refactor.refactoring import Refactoring


def _match(place: Place, rng: Random) -> Project | None:
    """Turn tests of one subject against constants into cases; a negated test of one arm becomes the rest."""
    node = place.statement
    if not isinstance(node, cst.If) or sys.version_info < (3, 10):
        return None
    subject, cases = "", []
    arm: cst.If | cst.Else | None = node
    lead = ""
    while isinstance(arm, cst.If):
        asked = _asked(place, arm.test)
        if asked is None or subject not in ("", asked[0]):
            return None
        subject = asked[0]
        above = "" if arm is node else place.lead(arm)
        if asked[2] and (arm is not node or isinstance(arm.orelse, cst.If)):
            return None
        cases.append((above, asked[1], place.suite(arm.body)))
        lead, arm = asked[2], arm.orelse
    if arm is not None:
        cases.append((place.source(arm.leading_lines), "_", place.suite(arm.body)))
    if lead:
        cases = [
            (cases[0][0], cases[0][1], cases[1][2] if len(cases) > 1 else "pass\n"),
            ("", "_", cases[0][2]),
        ]
    text = "".join(f"{a}case {p}:\n{place.indented(b)}" for a, p, b in cases)
    return place.replaced(f"{place.lead()}match {subject}:\n{place.indented(text)}")


def _asked(place: Place, test: cst.BaseExpression) -> tuple[str, str, str] | None:
    """Return the subject of a comparison, the pattern, and "not" where it must not match."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    target = test.comparisons[0]
    right = target.comparator
    none = isinstance(right, cst.Name) and right.value in ("None", "True", "False")
    number = isinstance(right, cst.Integer) or (
        isinstance(right, cst.SimpleString) and right.quote in ("'", '"') and not right.prefix
    )
    if isinstance(target.operator, cst.Is | cst.IsNot) and none:
        word = "not" if isinstance(target.operator, cst.IsNot) else ""
    elif isinstance(target.operator, cst.Equal | cst.NotEqual) and number:
        word = "not" if isinstance(target.operator, cst.NotEqual) else ""
    else:
        return None
    return place.source(test.left), place.source(right), word


REFACTORINGS = (Refactoring("an if becomes a match", "control", somewhere(_match, cst.If)),)
