"""Exceptions that a helper states and a caller catches: ways past a step that no jump of the caller shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from amp_migrate.flow import Graph, Kind, Point, leads
from amp_migrate.flow.cfg.points import Edge, EdgeKind
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.rounds import graph_of
from amp_migrate.protocol.code.exceptions import Exceptions


@once
def raising(project: Project) -> Raising:
    """Return what follows the exceptions of a project; made once."""
    return Raising(project)


class Raising:
    """Follows what ``raise`` statements throw, out of the functions that have them, to where it is caught."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._exceptions = Exceptions(project)
        self._graphs: dict[Function, Graph] = {}
        self._thrown: dict[Function, frozenset[str]] = {}

    def graph(self, function: Function) -> Graph:
        """Return the graph of a function, in which a call also goes to what catches the exceptions that it is seen to throw."""
        if function not in self._graphs:
            plain = graph_of(self._project, function)
            self._graphs[function] = plain
            found = dict(self._edges(function, plain))
            edges = tuple(
                found.get(p, out) for p, out in zip(plain.points, plain.edges, strict=True)
            )
            self._graphs[function] = replace(plain, edges=edges) if found else plain
        return self._graphs[function]

    def goes_on(self, site: CallSite, callee: Function) -> Iterator[Point]:
        """Yield where the function of a call goes on with an exception that a function called there throws."""
        names = self._leaving(callee)
        graph = graph_of(self._project, site.function)
        for point in graph.at(site.call, Kind.CALL) if names else ():
            yield from (
                e.target for e in graph.successors(point) if self._takes(e, site.function, names)
            )

    def _edges(self, function: Function, graph: Graph) -> Iterator[tuple[Point, tuple[Edge, ...]]]:
        """Yield the calls that are seen to throw, each with its edges: the one of what it throws is like that of a statement."""
        for call in function.calls:
            if not self._exceptions.survived(function, call):
                continue
            names = frozenset[str]().union(*map(self._leaving, self._project.callees(call)))
            for point in graph.at(call, Kind.CALL) if names else ():
                edges = graph.successors(point)
                taken = [edge for edge in edges if self._takes(edge, function, names)]
                if taken:
                    yield (
                        point,
                        tuple(e._replace(kind=EdgeKind.RAISE) if e in taken else e for e in edges),
                    )

    def _takes(self, edge: Edge, function: Function, names: frozenset[str]) -> bool:
        """Tell whether an exception of some names may go along an edge."""
        if edge.kind is not EdgeKind.EXCEPTION:
            return False
        guard = edge.target.node
        if not isinstance(guard, ast.Try):
            return True
        caught = self._exceptions.caught
        return any(caught(function.module, guard, name) is not False for name in names)

    def _leaving(self, function: Function) -> frozenset[str]:
        """Return the exceptions that leave a function which may also end without one, by their names."""
        if function not in self._thrown:
            self._thrown[function] = frozenset()
            graph = self.graph(function)
            order = graph.order(exceptions=False)
            if order.may_reach(graph.entry, graph.exit):
                self._thrown[function] = frozenset(self._names(function, graph))
        return self._thrown[function]

    def _names(self, function: Function, graph: Graph) -> Iterator[str]:
        order = graph.order(exceptions=False)
        for point in graph.points:
            if not order.may_reach(graph.entry, point) or not leads(order, [point], [graph.raised]):
                continue
            if point.kind is Kind.RAISE and isinstance(point.node, ast.Raise):
                yield self._exceptions.named(function.module, point.node)
            elif point.kind is Kind.CALL and isinstance(point.node, ast.Call):
                for edge in graph.successors(point):
                    if edge.kind is EdgeKind.RAISE:
                        thrown = map(self._leaving, self._project.callees(point.node))
                        yield from self._passing(function, edge, frozenset().union(*thrown))

    def _passing(self, function: Function, edge: Edge, names: frozenset[str]) -> Iterator[str]:
        """Yield the exceptions that what an edge leads to does not surely stop."""
        guard = edge.target.node
        for name in names:
            if not isinstance(guard, ast.Try) or not self._exceptions.caught(
                function.module, guard, name
            ):
                yield name
