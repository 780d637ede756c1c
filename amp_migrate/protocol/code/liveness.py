"""The variables that a function may still read: what is known of any other one is of no use."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.below import every
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program

_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)


class Liveness:
    """Reads it backwards off the graphs, for the variables that statements of one function alone read and bind."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._dead: dict[Function, dict[Point, frozenset[str]]] = {}

    def dead(self, function: Function, point: Point) -> frozenset[str]:
        """Return the variables that are bound anew before they are read, on every path from a point on."""
        if function not in self._dead:
            self._dead[function] = self._found(function)
        return self._dead[function].get(point, frozenset())

    def _found(self, function: Function) -> dict[Point, frozenset[str]]:
        graph = self._program.graph(function)
        own = self._own(function, graph)
        if not own:
            return {}
        alike: dict[frozenset[str], frozenset[str]] = {}
        dead = ((point, own - names) for point, names in _live(graph, own).items())
        return {point: alike.setdefault(names, names) for point, names in dead if names}

    def _own(self, function: Function, graph: Graph) -> frozenset[str]:
        """Return the variables that assignments bind, and nothing outside of the function, or in it, shares."""
        bound = {
            p.node.id for p in graph.points if _assigns(p) and isinstance(p.node, ast.Name)
        } - set(function.parameters.names)
        scopes, scope = function.module.scopes, function.scope
        return frozenset(
            name
            for name in bound
            if scopes.find(scope, name) is scope
            and all(scopes.scope_of(use) is scope for use in scopes.spelt(scope, name))
        )


def _live(graph: Graph, own: frozenset[str]) -> dict[Point, frozenset[str]]:
    """Return which of some variables may be read from each point on."""
    reads = {point: frozenset(_names(point)) & own for point in graph.points}
    into: dict[Point, list[Point]] = {point: [] for point in graph.points}
    for point in graph.points:
        for edge in graph.successors(point):
            into[edge.target].append(point)
    live = dict(reads)
    queue = [point for point in graph.points if reads[point]]
    for point in queue:
        for before in into[point]:
            kept = live[point]
            if _assigns(before) and isinstance(before.node, ast.Name):
                kept = kept - {before.node.id}
            if not kept <= live[before]:
                live[before] |= kept
                queue.append(before)
    return live


def _assigns(point: Point) -> bool:
    """Tell whether a point binds a variable to something that has nothing to do with what it held."""
    return point.kind is Kind.STORE and point.value is not None and isinstance(point.node, ast.Name)


def _names(point: Point) -> Iterator[str]:
    """Yield the variables that a point reads, or looks at as it is passed."""
    node = point.node
    read: list[ast.AST] = [node]
    if isinstance(node, _LOOPS):
        read = [node.target, node.iter]
    elif point.kind is Kind.STORE:
        read = [] if _assigns(point) else read
        read += [] if point.value is None else [point.value]
    elif isinstance(node, ast.stmt) and getattr(node, "body", None):
        return
    for part in read:
        yield from (n.id for n in every(part) if isinstance(n, ast.Name))
