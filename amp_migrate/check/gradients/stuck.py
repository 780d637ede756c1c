"""Whether a step that gradients themselves leave out lets the loss scale fall, where those had overflowed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import takewhile

from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.told import Told
from amp_migrate.facts.closure import closure
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import EdgeKind, Point
from amp_migrate.flow.cfg.points import Kind as At
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event, Kind

_STUCK = (
    "may leave out the step and clear gradients without scaler.update(), so that the loss scale never falls where "
    "they overflow:"
)
_STEPS, _CLEARS = frozenset({Kind.STEP}), frozenset({Kind.ZERO_GRAD})
_TRAINS = frozenset({Kind.BACKWARD})
_ENDS = _TRAINS | {Kind.UPDATE, Kind.SET_SCALE}
_JOINS = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.NamedExpr)
_WAYS = (EdgeKind.TRUE, EdgeKind.FALSE)
_Test = tuple[ast.expr, tuple[Point, ...]]


def stuck(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the tests of still scaled gradients past which a way leads to their end and no `update()`."""
    program = new.program
    reading = program.leading(_reads)
    if not reading:
        return
    told = Told(program, set(_clips(program)), reading)
    stepping = Onward(program, _STEPS, _TRAINS)
    clearing = Onward(program, _CLEARS, _ENDS)
    for name in changed(old, new):
        for function in new.functions[name]:
            found: dict[ast.expr, None] = {}
            for tests in _tests(program.graph(function), function, told):
                for test, ways in tests:
                    taking = [way for way in ways if stepping.leads(function, [way])]
                    others = [way for way in ways if way not in taking]
                    if test in found or (taking and clearing.leads(function, others)):
                        found[test] = None
                        break
            for test in found:
                yield differs(function, test, f"`{ast.unparse(test)}` {_STUCK}")


def _reads(event: Event) -> bool:
    return event.kind is Kind.READ_GRAD and event.scaled is True


def _clips(program: Program) -> Iterator[ast.AST]:
    for held in program.training.by_function.values():
        yield from (node for node, events in held.items() if any(map(_reads, events)))


def _tests(graph: Graph, function: Function, told: Told) -> Iterator[list[_Test]]:
    """Yield the tests in a function that tell of gradients, behind those that they are joined to others in, with their ways."""
    tree = function.module.tree
    seen: set[ast.AST] = set()
    for point in graph.points:
        node = point.node
        if node in seen or point.kind not in (At.TEST, At.MATCH):
            continue
        seen.add(node)
        if isinstance(node, ast.expr) and told.tells(function, node):
            joined = takewhile(lambda up: isinstance(up, _JOINS), tree.ancestors(node))
            whole = [node, *(up for up in joined if isinstance(up, ast.expr))]
            yield [(test, _behind(graph, graph.within(test))) for test in reversed(whole)]
        elif isinstance(node, ast.pattern):
            match = tree.enclosing(node, ast.Match)
            if match is not None and told.tells(function, match.subject):
                yield [(match.subject, _behind(graph, graph.at(node, At.MATCH)))]


def _behind(graph: Graph, points: Iterable[Point]) -> tuple[Point, ...]:
    """Return where the ways of a test begin."""
    own = set(points)
    edges = (edge for point in own for edge in graph.successors(point) if edge.kind in _WAYS)
    return tuple(dict.fromkeys(edge.target for edge in edges if edge.target not in own))


class Onward:
    """Whether a way leads to events of some kinds before those of others, in a function and behind its calls."""

    def __init__(self, program: Program, goals: frozenset[Kind], ends: frozenset[Kind]) -> None:
        self._program = program
        self._goals = goals
        self._ends = ends
        self._ended: dict[Function, set[Point]] = {}

    def leads(
        self, function: Function, starts: Iterable[Point], seen: frozenset[Function] = frozenset()
    ) -> bool:
        """Tell whether one does from some points of a function."""
        reached = self._reached(function, starts, self._coming)
        if reached is None:
            return True
        graph = self._program.graph(function)
        if function in seen or reached.isdisjoint((graph.exit, graph.raised)):
            return False
        around = seen | {function}
        return any(
            self.leads(site.function, self._back(site.function, site.call, graph, reached), around)
            for site in self._program.project.callers(function)
        )

    def _back(
        self, caller: Function, call: ast.Call, graph: Graph, reached: set[Point]
    ) -> list[Point]:
        """Return where a caller goes on once a function has come to one of its ends."""
        outer = self._program.graph(caller)
        return [
            edge.target
            for point in outer.at(call, At.CALL)
            for edge in outer.successors(point)
            if (graph.raised if edge.kind is EdgeKind.EXCEPTION else graph.exit) in reached
        ]

    def _reached(
        self, function: Function, starts: Iterable[Point], coming: Iterable[Function]
    ) -> set[Point] | None:
        """Return the points that ways lead to without an end in between; None where one of them is a goal."""
        graph, ended = self._program.graph(function), self._ends_of(function)
        goals = self._at(function, self._goals, frozenset(coming))

        def onward(point: Point) -> Iterator[Point]:
            edges = graph.successors(point) if point not in ended else ()
            return (edge.target for edge in edges if not edge.fails)

        found = set(closure(starts, onward))
        return found if found.isdisjoint(goals) else None

    @cached_property
    def _coming(self) -> frozenset[Function]:
        """The functions that may come to a goal before an end."""
        below = self._program.leading(self._is_of(self._goals))
        starts = [function for function in below if self._comes(function)]

        def callers(function: Function) -> list[Function]:
            holders = self._program.calls.holders(function)
            return [holder for holder in holders if self._comes(holder, function)]

        return frozenset(closure(starts, callers))

    def _comes(self, function: Function, *coming: Function) -> bool:
        """Tell whether a function comes to a goal of its own, or to one of others that do, before an end."""
        return self._reached(function, [self._program.graph(function).entry], coming) is None

    def _ends_of(self, function: Function) -> set[Point]:
        if function not in self._ended:
            below = self._program.leading(self._is_of(self._ends))
            self._ended[function] = self._at(function, self._ends, below)
        return self._ended[function]

    def _is_of(self, kinds: frozenset[Kind]) -> Callable[[Event], bool]:
        return lambda event: event.kind in kinds

    def _at(
        self, function: Function, kinds: frozenset[Kind], below: frozenset[Function]
    ) -> set[Point]:
        """Return the points of a function at which an event of some kinds is, or one of some functions runs."""
        events = self._program.training.of(function)
        return {
            point
            for point in self._program.graph(function).points
            if any(event.kind in kinds for event in events.get(point.node, ()))
            or self._program.enters(point.node, below)
        }
