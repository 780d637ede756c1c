"""The ways past an initialize of Apex on which one part of a test alone decides, and the others ask for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.installed import installed
from amp_migrate.check.apex.related import names_behind
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.protocol.code.program import Program


def joined(program: Program, item: Initialize) -> Iterator[Assumption]:
    """Yield what holds where a test of several parts leaves an initialize out for one of them, and no part has to do with another."""
    known: Assumption | None = installed(program.project, item.function)
    for test, truth in guards(item.function, item.call):
        if known is None:
            return
        kind = ast.And if truth else ast.Or
        if isinstance(test, ast.BoolOp) and isinstance(test.op, kind):
            behind = [names_behind(program, item.function, part) for part in test.values]
            for place, part in enumerate(test.values):
                others = [n for i, names in enumerate(behind) if i != place for n in names]
                if behind[place] and behind[place].isdisjoint(others):
                    way = _way(known, test, truth, part)
                    if way is not None:
                        yield way
        known = refine(known, test, truth)


def _way(known: Assumption, test: ast.BoolOp, truth: bool, decides: ast.expr) -> Assumption | None:
    """Return what holds where one part of a test comes out otherwise, and no other one."""
    if evaluate(decides, known) is truth:
        return None
    way: Assumption | None = known
    for part in test.values:
        way = refine(way, part, truth is not (part is decides)) if way is not None else None
    return way
