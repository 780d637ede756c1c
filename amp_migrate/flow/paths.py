"""The paths of a graph that an assumption leaves, when a test with the same operands comes out the same."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Point
from amp_migrate.flow.changes import Changes, after, cautious
from amp_migrate.flow.dominance import reach_masks
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.exploration import Exploration
from amp_migrate.flow.order import Order
from amp_migrate.flow.refine import refine
from amp_migrate.flow.terms import Aspect, Term, names_of


class Paths:
    """The feasible paths of a graph: those on which no test contradicts what is known by then.

    Starts with `assumption` at the entry. A branch that is taken adds its test to what is known, a constant that is
    stored its value; stores and running code take away, by `changes`. What is denied here is impossible as far as
    `changes` is right; what is allowed may still be impossible for other reasons.
    """

    def __init__(
        self,
        graph: Graph,
        assumption: Assumption = NOTHING,
        *,
        changes: Changes | None = None,
        exceptions: bool = True,
        asked: frozenset[str] = frozenset(),
    ) -> None:
        """Look at a graph from its entry, where `assumption` holds.

        Facts about names that no test reads any more are dropped on the way, but for those of `asked` and of
        the assumption itself; `evaluate` asks for the names that it needs.
        """
        self.graph = graph
        self.assumption = assumption
        self.changes = cautious(graph) if changes is None else changes
        self.exceptions = exceptions
        self.asked = asked | {o.text for fact in assumption.facts for o in fact.term.operands}
        self._base = graph.order(exceptions)
        self._asking: dict[frozenset[str], Paths] = {}
        self._steps: dict[tuple[int, Assumption], tuple[tuple[Edge, Assumption], ...]] = {}
        self._kept: dict[tuple[frozenset[str], Assumption], Assumption] = {}
        self._onward: dict[tuple[int, frozenset[int]], Exploration] = {}

    @cached_property
    def _wanted(self) -> list[frozenset[str]]:
        """For every point the names that tests and stored values still read from there on."""
        numbers: dict[str, int] = {}
        reads = [0] * len(self.graph.points)
        for point in self.graph.points:
            tests = [edge.test for edge in self._base.edges[point.index] if edge.test is not None]
            for node in (*tests, *(() if point.value is None else (point.value,))):
                for name in names_of(node):
                    reads[point.index] |= 1 << numbers.setdefault(name, len(numbers))
        successors = [[e.target.index for e in out] for out in self._base.edges]
        later = reach_masks(successors, reads)
        sets: dict[int, frozenset[str]] = {}
        found = []
        for own, mask in zip(reads, later, strict=True):
            bits = own | mask
            if bits not in sets:
                names = (name for name, number in numbers.items() if bits >> number & 1)
                sets[bits] = self.asked.union(names)
            found.append(sets[bits])
        return found

    def steps(self, point: Point, facts: Assumption) -> tuple[tuple[Edge, Assumption], ...]:
        """Return the edges that may be taken from a point where `facts` hold, with what is known then."""
        key = (point.index, facts)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = tuple(self._find_steps(point, facts))
        return found

    def _find_steps(self, point: Point, facts: Assumption) -> Iterator[tuple[Edge, Assumption]]:
        done, raised = after(point, facts, self.changes)
        for edge in self._base.edges[point.index]:
            known: Assumption | None = raised if edge.kind is EdgeKind.EXCEPTION else done
            if edge.test is not None and known is not None:
                known = refine(known, edge.test, edge.kind is EdgeKind.TRUE)
            if known is not None:
                yield edge, self._relevant(edge.target, known)

    def _relevant(self, point: Point, facts: Assumption) -> Assumption:
        """The facts that can matter from a point on."""
        if not facts.facts:
            return facts
        wanted = self._wanted[point.index]
        key = (wanted, facts)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = facts.only(lambda term: _speaks_of(term, wanted))
        return found

    def _explore(self, found: Exploration) -> Exploration:
        while (state := found.next()) is not None:
            if state[0].index not in found.avoided:
                for edge, known in self.steps(*state):
                    found.come((edge.target, known))
        return found

    @cached_property
    def _from_entry(self) -> Exploration:
        found = Exploration([(self.graph.entry, self.assumption)], self._base.ranks)
        return self._explore(found)

    def _from(self, a: Point, avoided: frozenset[int] = frozenset()) -> Exploration:
        """What is reached from `a` by one step or more, from any of the states in which it runs."""
        key = (a.index, avoided)
        if key not in self._onward:
            starts = [(e.target, known) for f in self.states(a) for e, known in self.steps(a, f)]
            self._onward[key] = self._explore(Exploration(starts, self._base.ranks, avoided))
        return self._onward[key]

    def states(self, point: Point) -> tuple[Assumption, ...]:
        """Return what may be known when a point is about to run: one assumption for each way to get there."""
        return tuple(self._from_entry.seen.get(point.index, ()))

    def holds(self, point: Point) -> Assumption | None:
        """Return what is known at a point on every path, and can matter; None where no feasible path leads."""
        states = self.states(point)
        if not states:
            return None
        common = states[0]
        for other in states[1:]:
            common = common.common(other)
        return common

    def evaluate(self, point: Point, node: ast.expr) -> bool | None:
        """Return the truth of an expression when a point is about to run, if it is the same on every path."""
        names = names_of(node)
        if not names <= self.asked:
            if names not in self._asking:
                self._asking[names] = Paths(
                    self.graph,
                    self.assumption,
                    changes=self.changes,
                    exceptions=self.exceptions,
                    asked=self.asked | names,
                )
            return self._asking[names].evaluate(point, node)
        found = {evaluate(node, facts) for facts in self.states(point)}
        return found.pop() if len(found) == 1 else None

    @cached_property
    def order(self) -> Order:
        """The order of what is left when edges go that no feasible path from the entry takes."""
        taken = {
            edge
            for point in self.graph.points
            for facts in self.states(point)
            for edge, _ in self.steps(point, facts)
        }
        edges = tuple(tuple(e for e in out if e in taken) for out in self._base.edges)
        return Order(self.graph.points, edges, self.graph.entry, self._base.ends)

    def reachable(self, point: Point) -> bool:
        """Return whether a feasible path leads from the entry to a point."""
        return bool(self.states(point))

    def may_reach(self, a: Point, b: Point) -> bool:
        """Return whether `b` may run after `a` on a feasible path."""
        return self._base.may_reach(a, b) and b.index in self._from(a).seen

    def must_pass(self, a: Point, b: Point, through: Collection[Point]) -> bool:
        """Return whether every feasible path from `a` to `b` passes one of `through` between the two."""
        avoided = frozenset(p.index for p in through)
        if (a.index, avoided) not in self._onward and self._base.must_pass(a, b, through):
            return True
        return b.index not in self._from(a, avoided).seen

    def must_reach(self, a: Point, targets: Iterable[Point]) -> bool:
        """Return whether every feasible run that goes on from `a` passes one of `targets` after it."""
        avoided = frozenset(p.index for p in targets)
        if a in self._base.ends:
            return not self.reachable(a)
        seen = self._from(a, avoided).seen
        return not any(end in seen and end not in avoided for end in self.order.final)

    def witness(
        self, a: Point, b: Point, avoiding: Iterable[Point] = ()
    ) -> tuple[Point, ...] | None:
        """Return a shortest feasible path from `a` to `b` that avoids some points in between; None if there is none."""
        found = self._from(a, frozenset(p.index for p in avoiding))
        path = found.path_to(b, self.steps) if b.index in found.seen else None
        return None if path is None else (a, *path)


def _speaks_of(term: Term, names: frozenset[str]) -> bool:
    return any(o.aspect is Aspect.BINDING and o.text in names for o in term.operands)


def leads(
    order: Order | Paths,
    starts: Iterable[Point],
    goals: Iterable[Point],
    avoiding: Collection[Point] = (),
) -> bool:
    """Return whether a way leads from one of `starts` to one of `goals`, with no point of `avoiding` between the two."""
    goals = list(goals)
    return any(not order.must_pass(start, goal, avoiding) for start in starts for goal in goals)


def leads_over(
    order: Order | Paths,
    starts: Sequence[Point],
    middle: Iterable[Point],
    ends: Sequence[Point],
    renewing: Iterable[Point] = (),
) -> bool:
    """Return whether a way leads from one of `starts` over a middle point to an end.

    No other end lies before the middle point, and behind it neither another start nor a point of `renewing`.
    """
    again = [*renewing, *starts]
    return any(
        leads(order, starts, [point], ends) and leads(order, [point], ends, again)
        for point in middle
    )
