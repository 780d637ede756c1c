"""Holds what a graph says of a skeleton against what its runs did."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from amp_migrate.flow import Assumption, Edge, EdgeKind, Graph, Kind, Paths, Point
from tests.flow.tape import Event, Trace

_EVENTS = {"e", "b", "w", "it", "c"}


def number_of(node: ast.AST) -> int | None:
    """Return the number of an event's call; None for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EVENTS:
        given = node.args[0]
        assert isinstance(given, ast.Constant)
        assert isinstance(given.value, int)
        return given.value
    return None


def event_of(point: Point) -> Event | None:
    """Return the event that a point is; None for the points between events."""
    node = point.node
    if point.kind is Kind.CALL:
        number = number_of(node)
        return None if number is None else ("call", number)
    if point.kind is Kind.NEXT and isinstance(node, ast.For | ast.comprehension):
        number = number_of(node.iter)
        return None if number is None else ("next", number)
    if point.kind in (Kind.ENTER, Kind.LEAVE) and isinstance(node, ast.withitem):
        number = number_of(node.context_expr)
        return None if number is None else (point.kind.value, number)
    return None


class Walker:
    """Follows runs through a graph: which points they may be at."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.events = {p: e for p in graph.points if (e := event_of(p)) is not None}
        self._reached: dict[tuple[Point, bool | None], frozenset[Point]] = {}

    def follows(self, trace: Trace) -> str | None:
        """Return None where a run is a path of the graph, else where it leaves it."""
        at = self.from_here(self.graph.entry, True)
        for place, happened in enumerate(trace.happened):
            here = {p for p in at if self.events.get(p) == happened.event}
            if not here:
                return f"no way to {happened} at {place}"
            at = frozenset().union(*(self.from_here(p, happened.truth) for p in here))
        if trace.end == "exit" and self.graph.exit not in at:
            return "no way to the exit"
        if trace.end == "raised" and self.graph.raised not in at:
            return "no way out for the exception"
        return None

    def from_here(self, start: Point, truth: bool | None) -> frozenset[Point]:
        """Return the events and exits that come next after an event came out as `truth`."""
        found = self._reached.get((start, truth))
        if found is not None:
            return found
        goals: set[Point] = set()
        seen: set[Point] = set()
        stack = [e.target for e in self.graph.successors(start) if self.fits(e, start, truth)]
        while stack:
            point = stack.pop()
            if point in seen:
                continue
            seen.add(point)
            if point in self.events or point in (self.graph.exit, self.graph.raised):
                goals.add(point)
                continue
            stack += [e.target for e in self.graph.successors(point) if self.fits(e, start, truth)]
        found = self._reached[start, truth] = frozenset(goals)
        return found

    def fits(self, edge: Edge, event: Point, truth: bool | None) -> bool:
        """Return whether an edge between two events may be taken after the first came out as `truth`."""
        source = edge.source
        if source is event:
            if truth is None:
                return edge.kind is EdgeKind.EXCEPTION
            if source.kind is Kind.NEXT:
                return edge.kind is (EdgeKind.TRUE if truth else EdgeKind.FALSE)
        if edge.kind is EdgeKind.EXCEPTION:
            return source.kind is Kind.YIELD
        if source.kind is Kind.TEST and source.node is event.node:
            return edge.kind is (EdgeKind.TRUE if truth else EdgeKind.FALSE)
        return True


Places = dict[Event, list[Point]]
"""The points of every event."""


@dataclass
class Seen:
    """What some runs showed about pairs of events."""

    ran: set[Event] = field(default_factory=set)
    after: set[tuple[Event, Event]] = field(default_factory=set)
    without_before: set[tuple[Event, Event]] = field(default_factory=set)
    without_after: set[tuple[Event, Event]] = field(default_factory=set)

    def add(self, trace: Trace, events: Iterable[Event], ended: bool) -> None:
        """Note one run; `ended` when it counts as a complete one."""
        before: set[Event] = set()
        everything = set(events)
        for event in trace.events:
            self.ran.add(event)
            self.after.update((other, event) for other in before)
            self.without_before.update((other, event) for other in everything - before)
            before.add(event)
        if ended:
            later: set[Event] = set()
            for event in reversed(trace.events):
                self.without_after.update((event, other) for other in everything - later)
                later.add(event)


@dataclass
class Figures:
    """How often a claim was made, of how often the runs would have allowed it."""

    denied: int = 0
    never_seen: int = 0
    dominates: int = 0
    always_before: int = 0
    post_dominates: int = 0
    always_after: int = 0
    dead: int = 0
    never_ran: int = 0

    def count(
        self, graph: Graph, exceptions: bool, places: Places, seen: Seen, a: Event, b: Event
    ) -> None:
        """Add two events that both ran."""
        order = graph.order(exceptions)
        of_a, of_b = places[a], places[b]
        self.denied += not any(order.may_reach(p, q) for p in of_a for q in of_b)
        self.never_seen += (a, b) not in seen.after
        self.dominates += all(order.must_pass(graph.entry, q, of_a) for q in of_b)
        self.always_before += (a, b) not in seen.without_before
        self.post_dominates += all(order.must_reach(p, of_b) for p in of_a)
        self.always_after += (a, b) not in seen.without_after


def check(graph: Graph, traces: Sequence[Trace], figures: Figures | None = None) -> list[str]:
    """Return what the graph claims and a run refutes."""
    walker = Walker(graph)
    wrong = [f"{why}: {trace.events}" for trace in traces if (why := walker.follows(trace))]
    for exceptions in (True, False):
        order = graph.order(exceptions)
        places: Places = {}
        for point, event in walker.events.items():
            if order.reachable(point):
                places.setdefault(event, []).append(point)
        seen = Seen()
        for trace in traces:
            if exceptions or trace.plain:
                ended = trace.end == "exit" or (exceptions and trace.end == "raised")
                seen.add(trace, places, ended)
        wrong += [f"dead but ran: {event}" for event in seen.ran if event not in places]
        if wrong:
            return wrong
        for a in places:
            for b in places:
                wrong += [
                    f"{exceptions}: {why}" for why in _pair(graph, exceptions, places, seen, a, b)
                ]
                if figures is not None and a != b and {a, b} <= seen.ran:
                    figures.count(graph, exceptions, places, seen, a, b)
        wrong += _between(graph, exceptions, places, traces)
    return wrong


def _pair(
    graph: Graph, exceptions: bool, places: Places, seen: Seen, a: Event, b: Event
) -> Iterator[str]:
    """Yield what the order claims of two events and runs refute; the dearer questions are asked of every third pair."""
    order = graph.order(exceptions)
    of_a, of_b = places[a], places[b]
    if (a, b) in seen.after and not any(order.may_reach(p, q) for p in of_a for q in of_b):
        yield f"{b} ran after {a}"
    single = len(of_a) == len(of_b) == 1 and a != b
    if single and (a, b) in seen.without_before and order.dominates(of_a[0], of_b[0]):
        yield f"{b} ran before {a}, which dominates"
    if (a[1] + b[1]) % 3:
        return
    first = a != b and all(order.must_pass(graph.entry, q, of_a) for q in of_b)
    if first and (a, b) in seen.without_before:
        yield f"{b} ran before {a}"
    last = all(order.must_reach(p, of_b) for p in of_a)
    if last and (a, b) in seen.without_after:
        yield f"{a} ran last, no {b} after it"
    if single and order.dominates(of_a[0], of_b[0]) is not first:
        yield f"dominators differ {a} {b}"


def _between(graph: Graph, exceptions: bool, places: Places, traces: Sequence[Trace]) -> list[str]:
    """Check `between` on what ran between two neighbours of the same kind, for events of one point."""
    order = graph.order(exceptions)
    single = {event: points[0] for event, points in places.items() if len(points) == 1}
    wrong: list[str] = []
    asked: set[tuple[Event, Event, Event]] = set()
    for trace in traces:
        if not (exceptions or trace.plain):
            continue
        for (a, b), c in zip(pairwise(trace.events), trace.events[2:], strict=False):
            if (a, b, c) in asked or not {a, b, c} <= single.keys():
                continue
            asked.add((a, b, c))
            if single[b].index not in order.between(single[a], single[c]):
                wrong.append(f"{exceptions}: {b} ran between {a} and {c}")
    return wrong


def check_paths(paths: Paths, traces: Sequence[Trace], figures: Figures | None = None) -> list[str]:
    """Return which runs, all under the assumption of `paths`, are not feasible by it, or refute what it denies."""
    wrong = infeasible(paths, traces)
    if wrong:
        return wrong
    walker = Walker(paths.graph)
    places: Places = {}
    for point, event in walker.events.items():
        if paths.graph.order().reachable(point):
            places.setdefault(event, []).append(point)
    seen = Seen()
    for trace in traces:
        seen.add(trace, places, trace.end in ("exit", "raised"))
    for a, of_a in places.items():
        if figures is not None and a not in seen.ran:
            figures.never_ran += 1
            figures.dead += not any(map(paths.reachable, of_a))
        for b, of_b in places.items():
            if (3 * a[1] + b[1]) % 7:
                continue
            if (a, b) in seen.after:
                if not any(paths.may_reach(p, q) for p in of_a for q in of_b):
                    wrong.append(f"{b} ran after {a}")
            if (a, b) in seen.without_before and a != b:
                if all(paths.must_pass(paths.graph.entry, q, of_a) for q in of_b):
                    wrong.append(f"{b} ran before {a}")
            if (a, b) in seen.without_after:
                if all(paths.must_reach(p, of_b) for p in of_a):
                    wrong.append(f"{a} ran last, no {b} after it")
    return wrong


def infeasible(paths: Paths, traces: Sequence[Trace]) -> list[str]:
    """Return which runs take an edge that `paths` rules out."""
    walker = Walker(paths.graph)
    return [f"{why}: {t.given} {t.events}" for t in traces if (why := _feasible(walker, paths, t))]


def _feasible(walker: Walker, paths: Paths, trace: Trace) -> str | None:
    """Follow a run over edges that `paths` allows, with what is known on the way."""
    graph = paths.graph
    at = _onward(walker, paths, {(graph.entry, paths.assumption)}, True)
    for place, happened in enumerate(trace.happened):
        here = {state for state in at if walker.events.get(state[0]) == happened.event}
        if not here:
            return f"not feasible: {happened} at {place}"
        at = _onward(walker, paths, here, happened.truth)
    ends = {point for point, _ in at}
    if trace.end == "exit" and graph.exit not in ends:
        return "the exit is not feasible"
    if trace.end == "raised" and graph.raised not in ends:
        return "the way out for the exception is not feasible"
    return None


def _onward(
    walker: Walker, paths: Paths, starts: set[tuple[Point, Assumption]], truth: bool | None
) -> set[tuple[Point, Assumption]]:
    goals: set[tuple[Point, Assumption]] = set()
    for start in starts:
        event = start[0]
        stack, seen = [start], set()
        while stack:
            state = stack.pop()
            for edge, known in paths.steps(*state):
                target = (edge.target, known)
                if not walker.fits(edge, event, truth) or target in seen:
                    continue
                seen.add(target)
                if edge.target in walker.events or not paths.graph.successors(edge.target):
                    goals.add(target)
                else:
                    stack.append(target)
    return goals
