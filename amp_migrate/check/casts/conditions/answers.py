"""Whether functions and properties that tell whether Apex is on still ask what they asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize, guards
from amp_migrate.check.apex.installed import installed
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.below import every as every_part
from amp_migrate.facts.paths import argument
from amp_migrate.flow import NOTHING, Assumption, Paths
from amp_migrate.project import Function
from amp_migrate.project.reach import leading_to
from amp_migrate.training.contexts import scaling_calls
from amp_migrate.training.flags.setting import read

_ENABLED = 2
_FIXED = "answers in every run whether AMP is on, where a flag did:"
_Test = tuple[Function, ast.expr]


def answered(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield what a function of the new text returns in every run that Apex was asked by, where a flag decided in the old one."""
    asked = frozenset(f for where, test in _tests(old, every) for f in _behind(old, where, test))
    for name in changed(old, new) if asked else ():
        before = [f for f in old.functions[name] if f in asked and not claims.drops(f)]
        for one, other in zip(before, new.functions[name], strict=False):
            had = {answer for answer, _ in _answers(old, one, installed(old.project, one))}
            has = list(_answers(new, other, NOTHING))
            truths = {answer for answer, _ in has}
            if len(truths) == 1 and None not in truths and had not in (set(), truths):
                statement = has[0][1]
                yield differs(other, statement, f"`{ast.unparse(statement)}` {_FIXED}")


def _tests(side: Side, every: Sequence[Initialize]) -> Iterator[_Test]:
    """Yield what decides whether Apex is initialized, and whether it scales a loss."""
    project = side.project
    sites = [(item.function, item.call) for item in every]
    known = scaling_calls(project)
    scaling = [(f, call) for f in project.functions() for call in f.calls if call in known]
    for function, call in [*leading_to(project, *sites), *(scaling if every else ())]:
        yield from ((function, test) for test, _ in guards(function, call))
    for item in every:
        enabled = argument(item.call, "enabled", _ENABLED)
        yield from [(item.function, enabled)] if enabled is not None else []


def _behind(side: Side, function: Function, test: ast.expr) -> Iterator[Function]:
    """Yield the functions and properties that a test asks."""
    for where, body in read(side.project, function, test):
        if body is where.node:
            yield where


def _answers(
    side: Side, function: Function, known: Assumption
) -> Iterator[tuple[bool | None, ast.Return]]:
    """Yield what a function may return, as it counts in a test; nothing for one that asks Apex itself."""
    graph = side.program.graph(function)
    paths = Paths(graph, known, exceptions=False)
    returns = [n for n in function.own_nodes if isinstance(n, ast.Return)]
    found: list[tuple[bool | None, ast.Return]] = []
    for statement in returns:
        points = graph.within(statement)
        if statement.value is None or not any(map(paths.reachable, points)):
            continue
        answer = paths.evaluate(points[-1], statement.value)
        if answer is None and _asks_apex(side, function, statement.value):
            return
        found.append((answer, statement))
    yield from found


def _asks_apex(side: Side, function: Function, value: ast.expr) -> bool:
    parts = (part for part in every_part(value) if isinstance(part, ast.Name | ast.Attribute))
    return any(side.labels.is_apex(function, part) for part in parts)
