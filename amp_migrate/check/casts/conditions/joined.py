"""The ways past an initialize of Apex on which one part of what it goes by alone decides, and the others ask for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.flags.behind import names_behind
from amp_migrate.check.apex.given import asked, choice_of, given, off_arm
from amp_migrate.check.apex.installed import installed
from amp_migrate.facts.paths import argument
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.project import Project
from amp_migrate.protocol.code.program import Program

_ENABLED = 2


@dataclass(frozen=True)
class _Part:
    """What asks for Apex with `on`, and leaves it off with `off`, each as a test and how it comes out; `key` where it is an entry of options."""

    node: ast.expr
    on: tuple[ast.expr, bool]
    off: tuple[ast.expr, bool]
    key: str = ""


def apart(program: Program, item: Initialize) -> Iterator[Assumption]:
    """Yield what holds where an initialize does nothing for one part of all that it goes by, and no part has to do with another."""
    parts = _parts(program.project, item)
    behind = [
        frozenset({part.key}) if part.key else names_behind(program, item.function, part.node)
        for part in parts
    ]
    for place, names in enumerate(behind):
        others = [other for i, other in enumerate(behind) if i != place]
        if names and all(other and names.isdisjoint(other) for other in others) and others:
            way: Assumption | None = installed(program.project, item.function)
            for i, part in enumerate(parts):
                way = refine(way, *(part.off if i == place else part.on)) if way else None
            if way is not None and evaluate(parts[place].off[0], way) is parts[place].off[1]:
                yield way


def _parts(project: Project, item: Initialize) -> list[_Part]:
    """Return what an initialize goes by: the parts of the tests around it, what switches it, and its level."""
    known = installed(project, item.function)
    found = [
        _Part(part, (part, truth), (part, not truth))
        for test, holds in guards(item.function, item.call)
        for part, truth in _simple(test, holds)
        if evaluate(part, known) is None
    ]
    return [*found, *_switches(project, item)]


def does_nothing(project: Project, item: Initialize, known: Assumption) -> bool:
    """Tell whether an initialize that runs leaves AMP off, by what it is given, where something holds in its function."""
    return any(evaluate(p.off[0], known) is p.off[1] for p in _switches(project, item))


def _switches(project: Project, item: Initialize) -> list[_Part]:
    """Return what switches an initialize that runs: an argument or entry, and its level."""
    found: list[_Part] = []
    module, call = item.function.module, item.call
    switch = given(module, call, "enabled", _ENABLED)
    entry = asked(project, module, call, "enabled") if switch is None else None
    if entry is not None:
        found.append(_Part(entry, (entry, True), (entry, False), "enabled"))
    elif switch is not None and not isinstance(switch, ast.Constant):
        found.append(_Part(switch, (switch, True), (switch, False)))
    return [*found, *_of_level(item)]


def _of_level(item: Initialize) -> Iterator[_Part]:
    level = item.level
    choice = choice_of(item.function, level)
    if choice is not None:
        off = choice.body is off_arm(choice)
        yield _Part(choice.test, (choice.test, not off), (choice.test, off))
    elif level is not None and not isinstance(level, ast.Constant | ast.IfExp):
        on, off_ = (ast.Compare(level, [ast.Eq()], [ast.Constant(name)]) for name in ("O1", "O0"))
        entry = "" if argument(item.call, "opt_level") is not None else "opt_level"
        yield _Part(level, (on, True), (off_, True), entry)


def _simple(test: ast.expr, truth: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the parts of a test that must all come out in one way for it to come out as it does."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _simple(test.operand, not truth)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if truth else ast.Or):
        for part in test.values:
            yield from _simple(part, truth)
    else:
        yield test, truth


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
