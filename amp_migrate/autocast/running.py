"""Which code a call comes to, by the constants that it and the calls below it are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import spreads, walk
from amp_migrate.flow import NOTHING, Assumption, Known, Paths
from amp_migrate.flow.evaluate import value_of
from amp_migrate.flow.terms import names_of, term
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.project.rounds import graph_of, points_of

_Run = tuple[Function, Assumption]


class Running:
    """Tells whether calls may come to some nodes."""

    def __init__(self, project: Project, wanted: frozenset[ast.AST]) -> None:
        self._project = project
        self._wanted = wanted
        self._holding = {project.holder(node) for node in wanted}

    def may_come(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call in a function may come to one of the nodes."""
        holding = reached_by(self._project, call) & self._holding
        if not holding:
            return False
        queue = list(self._runs((function, NOTHING), call))
        for run in queue:
            paths = self._paths(run, frozenset())
            for node in walk(run[0].scope):
                if node in self._wanted and self._reached(paths, run[0], node):
                    return True
                if isinstance(node, ast.Call) and self._reached(paths, run[0], node):
                    queue += [r for r in self._runs(run, node) if r not in queue]
        return not holding <= {function for function, _ in queue}

    def _runs(self, run: _Run, call: ast.Call) -> Iterator[_Run]:
        """Yield the functions that a call runs, with what is known of their parameters."""
        for callee in self._project.callees(call):
            yield callee, self._given(run, call, callee)

    def _given(self, run: _Run, call: ast.Call, callee: Function) -> Assumption:
        function = run[0]
        given = self._project.given(call, callee)
        paths = self._paths(run, frozenset().union(*map(names_of, given.values())))
        holds = [paths.holds(point) for point in points_of(self._project, function, call)]
        known = NOTHING
        for name in callee.parameters.names:
            value = given.get(name)
            default = callee.parameters.defaults.get(name)
            found = (
                {value_of(value, facts) for facts in holds if facts is not None}
                if value is not None
                else {value_of(default)}
                if default is not None and not spreads(call)
                else set()
            )
            spelt = term(ast.Name(name, ast.Load()))
            one = found.pop() if len(found) == 1 else None
            if isinstance(one, Known) and spelt is not None:
                known = known.with_fact(spelt.of_object(), one)
        return known

    def _paths(self, run: _Run, asked: frozenset[str]) -> Paths:
        graph = graph_of(self._project, run[0])
        return Paths(graph, run[1], exceptions=True, asked=asked)

    def _reached(self, paths: Paths, function: Function, node: ast.AST) -> bool:
        points = points_of(self._project, function, node)
        return not points or any(paths.reachable(point) for point in points)
