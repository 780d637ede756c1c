"""Under which tests a point runs: control dependence."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from amp_migrate.flow.cfg.points import Edge, Point
from amp_migrate.flow.dominance import immediate_dominators, reversed_edges
from amp_migrate.flow.order import Order


@dataclass(frozen=True)
class Decided:
    """One edge out of a branch was taken: a test came out so, an item was left, a pattern fitted, a call raised."""

    edge: Edge

    def __str__(self) -> str:
        """Write the test as code, or the kind of the edge and its line."""
        if self.edge.test is None:
            return f"<{self.edge.kind.value} at line {self.edge.source.line}>"
        text = ast.unparse(self.edge.test)
        return text if self.edge.truth else f"not ({text})"


@dataclass(frozen=True)
class All:
    """Each of some conditions; without parts it always holds."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        """Write the parts, joined by `and`."""
        return " and ".join(map(str, self.parts)) or "always"


@dataclass(frozen=True)
class Any:
    """At least one of some conditions; without parts it never holds."""

    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        """Write the parts, joined by `or`."""
        return "(" + " or ".join(map(str, self.parts)) + ")" if self.parts else "never"


Condition = Decided | All | Any
ALWAYS = All()
NEVER = Any()


class Control:
    """The control dependence of an order."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._direct = _dependence(order)
        self._conditions: dict[int, Condition] = {}

    def direct(self, point: Point) -> tuple[Edge, ...]:
        """Return the edges that decide by themselves that a point runs, where the other way out may miss it."""
        return self._direct.get(point.index, ())

    def condition(self, point: Point) -> Condition:
        """Return what must have come out how for a point to run, in one turn of the loops around it.

        Each test speaks of the moment when it stood. What a point itself decides, by running again, is left out.
        NEVER for a point that nothing reaches.
        """
        if not self.order.reachable(point):
            return NEVER
        return self._condition(point, frozenset())[0]

    def _condition(self, point: Point, above: frozenset[int]) -> tuple[Condition, bool]:
        """The condition, and whether it left out a way because that comes from `above`."""
        if point.index in self._conditions:
            return self._conditions[point.index], False
        deciding = [e for e in self.direct(point) if not self.order.dominates(point, e.source)]
        inside = above | {point.index}
        ways: list[Condition] = []
        short = False
        for edge in deciding:
            # a way around a cycle is not how a point runs first
            if edge.source.index in inside:
                short = True
                continue
            first, cut = self._condition(edge.source, inside)
            short = short or cut
            ways.append(_both(first, Decided(edge)))
        found = ALWAYS if not deciding else ways[0] if len(ways) == 1 else Any(tuple(ways))
        if not short or not above:
            self._conditions[point.index] = found
        return found, short


def _both(one: Condition, other: Decided) -> Condition:
    if one == NEVER:
        return NEVER
    return All((*one.parts, other)) if isinstance(one, All) else All((one, other))


def _dependence(order: Order) -> dict[int, tuple[Edge, ...]]:
    """The deciding edges of every point (Ferrante, Ottenstein, Warren 1987)."""
    successors = [[e.target.index for e in out] for out in order.edges]
    ends = {*order.final, *(node for node, out in enumerate(successors) if not out)}
    backwards = reversed_edges(successors)
    backwards.append(sorted(ends))
    above = immediate_dominators(backwards, len(successors))
    found: dict[int, list[Edge]] = {}
    for source, out in enumerate(order.edges):
        if len({e.target for e in out}) < 2 or not order.reachable(order.points[source]):
            continue
        for edge in out:
            _mark(edge, above, found)
    return {node: tuple(edges) for node, edges in found.items()}


def _mark(edge: Edge, above: Sequence[int], found: dict[int, list[Edge]]) -> None:
    node = edge.target.index
    stop = above[edge.source.index]
    while node not in (stop, -1, len(above) - 1):
        found.setdefault(node, []).append(edge)
        node = above[node]
