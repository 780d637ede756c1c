"""The finished control-flow graph of one body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.facts.below import every
from amp_migrate.flow.cfg.points import Edge, Kind, Point
from amp_migrate.flow.order import Order

Root = (
    ast.FunctionDef
    | ast.AsyncFunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.Module
    | ast.GeneratorExp
)


@dataclass(frozen=True, eq=False)
class Graph:
    """Points of one body and the edges between them.

    `exit` is where the body ends or returns, `raised` where an exception leaves it. A point of a `finally`
    body, or of the end of a `with`, is there once for each `Way` on which it runs. What nothing leads to is
    in `points` too; `order` knows what is reachable.
    """

    root: Root
    points: tuple[Point, ...]
    edges: tuple[tuple[Edge, ...], ...]
    entry: Point
    exit: Point
    raised: Point

    def successors(self, point: Point) -> tuple[Edge, ...]:
        """Return the edges out of a point, in the order of the text."""
        return self.edges[point.index]

    @cached_property
    def _at(self) -> dict[ast.AST, list[Point]]:
        table: dict[ast.AST, list[Point]] = {}
        for point in self.points:
            table.setdefault(point.node, []).append(point)
        return table

    def at(self, node: ast.AST, kind: Kind | None = None) -> tuple[Point, ...]:
        """Return the points of a node, perhaps only those of a kind.

        More than one where the node both is read and stored (`x += 1`), is tested, or lies in a `finally` body.
        """
        found = self._at.get(node, ())
        return tuple(p for p in found if kind is None or p.kind is kind)

    @cached_property
    def calls(self) -> tuple[ast.Call, ...]:
        """The calls of the body, each once."""
        return tuple(node for node in self._at if isinstance(node, ast.Call))

    def stores(self, name: str) -> list[Point]:
        """Return the points that store into a name."""
        return self._stores.get(name, [])

    def nearest_before(self, node: ast.AST, stops: Callable[[Point], bool]) -> list[Point]:
        """Return the points that may be the last of their sort before a node runs, going back from it."""
        return self._back(node, self._sources, stops)

    def bound_before(self, name: ast.Name) -> list[Point]:
        """Return the points that may bind a name last before it is read; the entry where nothing has to."""
        stops = {*self.stores(name.id), self.entry}
        passing = len(self.at(name)) == 1  # the copies of a `finally` body may lead to each other
        return self._back(name, self._passing if passing else self._sources, stops.__contains__)

    def _back(
        self, node: ast.AST, before: Sequence[Iterable[Point]], stops: Callable[[Point], bool]
    ) -> list[Point]:
        found: list[Point] = []
        stack = list(self.at(node))
        seen = set(stack)
        while stack:
            for point in before[stack.pop().index]:
                if point not in seen:
                    seen.add(point)
                    (found if stops(point) else stack).append(point)
        return found

    @cached_property
    def _sources(self) -> tuple[tuple[Point, ...], ...]:
        """The points straight before each."""
        into: list[list[Point]] = [[] for _ in self.points]
        for out in self.edges:
            for edge in out:
                into[edge.target.index].append(edge.source)
        return tuple(map(tuple, into))

    @cached_property
    def _passing(self) -> list[list[Point]]:
        """The points before each, but for those that bind no name and to which one way leads: what is before them."""
        ends: dict[Point, Point] = {}
        for start in self.points:
            point, trail = start, dict[Point, None]()
            while point not in ends and point not in trail and not self._is_stop(point):
                trail[point] = None
                point = self._sources[point.index][0]
            ends.update(dict.fromkeys((*trail, point), ends.get(point, point)))
        return [[ends[point] for point in sources] for sources in self._sources]

    def _is_stop(self, point: Point) -> bool:
        return len(self._sources[point.index]) != 1 or _binds(point)

    @cached_property
    def _stores(self) -> dict[str, list[Point]]:
        """The points that store into each name."""
        found: dict[str, list[Point]] = {}
        for point in self.points:
            if isinstance(point.node, ast.Name) and _binds(point):
                found.setdefault(point.node.id, []).append(point)
        return found

    def within(self, node: ast.AST) -> tuple[Point, ...]:
        """Return the points of a node and of all nodes inside it, in the order in which they were built."""
        if node not in self._within:
            found = [p for part in every(node) for p in self._at.get(part, ())]
            self._within[node] = tuple(sorted(found, key=lambda p: p.index))
        return self._within[node]

    @cached_property
    def _within(self) -> dict[ast.AST, tuple[Point, ...]]:
        return {}

    def order(self, exceptions: bool = True) -> Order:
        """Return what runs before what, with or without the edges of whatever may raise.

        Explicit `raise` statements count either way.
        """
        return self._with_exceptions if exceptions else self._without_exceptions

    @cached_property
    def _with_exceptions(self) -> Order:
        return Order(self.points, self.edges, self.entry, (self.exit, self.raised))

    @cached_property
    def _without_exceptions(self) -> Order:
        plain = tuple(tuple(edge for edge in out if not edge.fails) for out in self.edges)
        return Order(self.points, plain, self.entry, (self.exit,))


def _binds(point: Point) -> bool:
    return point.kind is Kind.STORE and isinstance(point.node, ast.Name)
