"""Which points may follow one another in a function, by how its tests come out; kept for all assumptions of a project."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from amp_migrate.check.apex.disabling import States
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given, looked_up
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Anonymous, Function, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.code.program import Program, program_of

Outcomes = tuple[bool | None, ...]
Onward = dict[Point, list[Point]]
_PROTOCOLS = ("__call__", "__getitem__", "__iter__", "__next__")
"""The methods by which Python itself goes through or calls the objects that a library is given."""


class Courses:
    """The courses that functions may take, without exceptions; most assumptions leave most of them alike."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._tests: dict[Function, tuple[ast.expr, ...]] = {}
        self._onward: dict[tuple[Function, Outcomes], Onward] = {}
        self._reached: dict[tuple[Function, Outcomes], list[Point]] = {}

    def outcomes(self, function: Function, known: Assumption) -> Outcomes:
        """Return how each test of a function comes out under an assumption; None where it may be either."""
        if function not in self._tests:
            edges = (edge for out in self._program.graph(function).edges for edge in out)
            tests = dict.fromkeys(e.test for e in edges if e.test is not None and not e.fails)
            self._tests[function] = tuple(tests)
        return tuple(evaluate(test, known) for test in self._tests[function])

    def onward(self, function: Function, told: Outcomes) -> Onward:
        """Return the points that may run straight behind each point of a function."""
        if (function, told) not in self._onward:
            graph = self._program.graph(function)
            truths = dict(zip(self._tests[function], told, strict=True))
            self._onward[function, told] = {
                point: [
                    edge.target
                    for edge in graph.successors(point)
                    if not edge.fails
                    and (edge.test is None or truths[edge.test] is not (not edge.truth))
                ]
                for point in graph.points
            }
        return self._onward[function, told]

    def reached(self, function: Function, told: Outcomes) -> list[Point]:
        """Return the points that a run of a function may come to, behind an exception that is caught as well."""
        if (function, told) not in self._reached:
            onward = self.onward(function, told)
            graph = self._program.graph(function)
            found = [graph.entry, *(p for p in graph.points if p.kind is Kind.CAUGHT)]
            self._reached[function, told] = closure(found, onward.__getitem__)
        return self._reached[function, told]


@once
def courses(project: Project) -> Courses:
    """Return the courses through the functions of a project."""
    return Courses(program_of(project))


def put_off(
    program: Program, function: Function, found: Mapping[Point, States]
) -> dict[Point, States]:
    """Return the states of a function, at a call that makes a generator those in which somebody goes through it."""
    deferred = program.training.losses.deferred
    held = dict(found)
    for point in found:
        if isinstance(point.node, ast.Call) and deferred.starts(point.node):
            places = deferred.evaluated(function.module, point.node) or []
            there = [states for other, states in found.items() if other.node in places]
            held[point] = frozenset[bool | None]().union(*there) if there else found[point]
    return held


def runs_each(call: ast.Call, callees: Sequence[Function]) -> bool:
    """Tell whether what a call may run does run there at some time: for one run it may be another, by a name."""
    return of_one_kind(callees) or looked_up(call.func) is not None


def of_one_kind(callees: Sequence[Function]) -> bool:
    """Tell whether a call runs one of what it may run for sure: one function, or one method of some classes, or a lambda."""
    named = [f for f in callees if not isinstance(f, Anonymous)]
    methods = {f.name for f in named if f.cls is not None}
    return len(named) < 2 or (len(methods) == 1 and all(f.cls is not None for f in named))


def handed(program: Program, call: ast.Call) -> list[Function]:
    """Return the functions that nothing else is seen to call, and that a call of a library may run, now or later."""
    project = program.project
    module = project.module_of(call)
    if project.external(module, call.func) is None:
        return []
    by_python = (m for g in all_given(call) for m in project.methods(module, g, *_PROTOCOLS))
    given = [*program.calls.handed(call), *by_python]
    return [f for f in given if f.node is not None and not project.callers(f)]
