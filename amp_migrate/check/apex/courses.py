"""Which points may follow one another in a function, by how its tests come out; kept for all assumptions of a project."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from amp_migrate.check.apex.disabling import States
from amp_migrate.facts.closure import closure
from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.code.program import Program, program_of

Outcomes = tuple[bool | None, ...]
Onward = dict[Point, list[Point]]


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
