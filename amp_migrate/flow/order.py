"""What runs before, after and between what, on the paths of one graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from amp_migrate.flow.cfg.points import Edge, Point
from amp_migrate.flow.dominance import (
    Successors,
    components,
    immediate_dominators,
    reach_masks,
    reverse_postorder,
    reversed_edges,
)
from amp_migrate.flow.loops import Loop, find_loops


class Order:
    """The paths along a set of edges of one graph.

    A *run* is a path from the entry to one of the `ends`. A loop with a way to them is taken to be left at last; in one
    without, a run counts as ending with every turn. A claim about every path holds when there is no path at all.
    """

    def __init__(
        self,
        points: Sequence[Point],
        edges: Sequence[Sequence[Edge]],
        entry: Point,
        ends: Sequence[Point],
    ) -> None:
        self.points = points
        self.edges = edges
        self.entry = entry
        self.ends = ends
        self._next = [tuple({e.target.index: None for e in out}) for out in edges]

    @cached_property
    def _previous(self) -> list[list[int]]:
        return reversed_edges(self._next)

    @cached_property
    def _masks(self) -> list[int]:
        return reach_masks(self._next)

    @cached_property
    def ranks(self) -> dict[int, int]:
        """The places of what the entry leads to, every point before its successors but for edges that go back."""
        order = reverse_postorder(self._next, self.entry.index)
        return {node: place for place, node in enumerate(order)}

    @cached_property
    def _reached(self) -> frozenset[int]:
        return frozenset(self.ranks)

    @cached_property
    def final(self) -> frozenset[int]:
        """Where runs end: the ends, and the last points of every turn of a loop that has no way to them."""
        final = {end.index for end in self.ends}
        rank = self.ranks
        ending = sum(1 << end for end in final)
        for component in components(self._next, sorted(rank)):
            inside = set(component)
            if any(s not in inside for node in component for s in self._next[node]):
                continue
            if not self._masks[component[0]] & ending:
                final.update(
                    node
                    for node in component
                    if any(rank[s] <= rank[node] for s in self._next[node])
                )
        return frozenset(final)

    @cached_property
    def _dominator(self) -> list[int]:
        return immediate_dominators(self._next, self.entry.index)

    @cached_property
    def _dominator_depth(self) -> list[int]:
        return _depths(self._dominator)

    def reachable(self, point: Point) -> bool:
        """Return whether some path leads from the entry to a point."""
        return point.index in self._reached

    def may_reach(self, a: Point, b: Point) -> bool:
        """Return whether `b` may run after `a`; for a point and itself, whether it may run again."""
        return bool(self._masks[a.index] >> b.index & 1)

    def dominates(self, a: Point, b: Point) -> bool:
        """Return whether every path from the entry to `b` passes `a`; False where none leads to `b`."""
        return _above(self._dominator, self._dominator_depth, a.index, b.index)

    def as_they_run(self, points: Sequence[Point]) -> list[Point]:
        """Return points that all dominate one other in the order in which they run."""
        return sorted(points, key=lambda one: sum(self.dominates(other, one) for other in points))

    def must_pass(self, a: Point, b: Point, through: Iterable[Point]) -> bool:
        """Return whether every path from `a` to `b` passes one of `through` on the way, between the two."""
        return not self._leads(a, {b.index}, {p.index for p in through})

    def must_reach(self, a: Point, targets: Iterable[Point]) -> bool:
        """Return whether every run that goes on from `a` passes one of `targets` after it."""
        avoided = {p.index for p in targets}
        return not self._leads(a, self.final - avoided, avoided) and not (
            a.index in self.final and a.index in {end.index for end in self.ends}
        )

    def between(self, a: Point, c: Point) -> set[int]:
        """Return the indices of what may run after `a` and before the next `c`, without another `a` in between."""
        walls = {a.index, c.index}
        return _met(self._next, a.index, walls) & _met(self._previous, c.index, walls)

    def witness(
        self, a: Point, b: Point, avoiding: Iterable[Point] = ()
    ) -> tuple[Point, ...] | None:
        """Return a shortest path of one edge or more from `a` to `b`, both included; None if there is none.

        No point between the two is one of `avoiding`.
        """
        avoided = {p.index for p in avoiding}
        if not self.may_reach(a, b):
            return None
        came: dict[int, int] = {}
        queue = deque([a.index])
        while queue:
            node = queue.popleft()
            for target in self._next[node]:
                if target in came:
                    continue
                came[target] = node
                if target == b.index:
                    return self._path(came, a.index, b.index)
                if target not in avoided:
                    queue.append(target)
        return None

    def leads_in_round(
        self, starts: Iterable[Point], goal: Point, avoiding: Iterable[Point]
    ) -> bool:
        """Return whether `goal` may run after one of `starts`, before a loop around both of them starts anew.

        No point between the two is one of `avoiding`.
        """
        avoided = {p.index for p in avoiding}
        around = {loop.header for loop in self.loops_of(goal)}
        for start in starts:
            anew = {loop.header for loop in self.loops_of(start)} & around - {start}
            if goal not in anew and self._leads(
                start, {goal.index}, avoided | {header.index for header in anew}
            ):
                return True
        return False

    def _path(self, came: dict[int, int], start: int, goal: int) -> tuple[Point, ...]:
        path = [goal, came[goal]]
        while path[-1] != start:
            path.append(came[path[-1]])
        return tuple(self.points[i] for i in reversed(path))

    def _leads(self, a: Point, goals: Iterable[int], avoided: Iterable[int]) -> bool:
        """Whether a path of one edge or more leads from `a` to a goal without an avoided point between them."""
        wanted = set(goals)
        if not self._masks[a.index] & sum(1 << goal for goal in wanted):
            return False
        seen = set(avoided) - wanted
        stack = [a.index]
        while stack:
            for target in self._next[stack.pop()]:
                if target in wanted:
                    return True
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return False

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops of the graph, outer ones before the loops inside them."""
        return find_loops(self.points, self.edges, self.entry)

    @cached_property
    def _loops_of(self) -> dict[Point, tuple[Loop, ...]]:
        table: dict[Point, tuple[Loop, ...]] = {}
        for loop in self.loops:
            for point in loop.body:
                table[point] = (loop, *table.get(point, ()))
        return table

    def loops_of(self, point: Point) -> tuple[Loop, ...]:
        """Return the loops that a point lies in, the innermost first."""
        return self._loops_of.get(point, ())


def _met(successors: Successors, start: int, walls: Collection[int]) -> set[int]:
    """What paths of one edge or more from a node come to; none goes on from a wall but the start itself."""
    met: set[int] = set()
    stack = [start]
    while stack:
        for target in successors[stack.pop()]:
            if target not in met:
                met.add(target)
                if target not in walls:
                    stack.append(target)
    return met


def _depths(parents: Sequence[int]) -> list[int]:
    """The depth of every node in a tree of parents; -1 for what is not in it."""
    depth = [-1] * len(parents)
    for node, parent in enumerate(parents):
        if parent == node:
            depth[node] = 0
    for start, parent in enumerate(parents):
        if parent < 0:
            continue
        chain = [start]
        while depth[chain[-1]] < 0:
            chain.append(parents[chain[-1]])
        at = depth[chain.pop()]
        while chain:
            at += 1
            depth[chain.pop()] = at
    return depth


def _above(parents: Sequence[int], depth: Sequence[int], a: int, b: int) -> bool:
    if depth[b] < 0 or depth[a] < 0:
        return False
    while depth[b] > depth[a]:
        b = parents[b]
    return a == b
