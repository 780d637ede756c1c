"""Whether a step that gradients themselves leave out lets the loss scale fall, where those had overflowed."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import defs, uses
from amp_migrate.flow.cfg.points import Point
from amp_migrate.flow.paths import leads
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event, Kind

_STUCK = (
    "may leave out the step and clear gradients without scaler.update(), so that the loss scale never falls where "
    "they overflow:"
)
_UPDATES = (Kind.UPDATE, Kind.SET_SCALE)


def stuck(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the tests of still scaled gradients past which a way leads to their end and no `update()`."""
    program = new.program
    reading = program.leading(_reads)
    for name, _ in changed(old, new) if reading else ():
        for function in new.functions[name]:
            if function not in reading:
                continue
            moments = _Moments(program, function)
            for test in _tests(function, _told(program, function, reading)):
                if moments.gets_stuck(test):
                    yield differs(function, test.test, f"`{ast.unparse(test.test)}` {_STUCK}")


def _reads(event: Event) -> bool:
    return event.kind is Kind.READ_GRAD and event.scaled is True


class _Moments:
    """When a function steps, updates, clears gradients and adds to them, itself or in what it calls."""

    def __init__(self, program: Program, function: Function) -> None:
        self._program = program
        self._function = function
        self._graph = program.graph(function)
        self._steps = self._of(Kind.STEP)
        self._trains = self._of(Kind.BACKWARD)
        self._updates = self._of(*_UPDATES)
        self._clears = self._of(Kind.ZERO_GRAD)

    def _of(self, *kinds: Kind) -> list[Point]:
        below = self._program.leading(lambda event: event.kind in kinds)
        events = self._program.training.of(self._function)
        return [
            point
            for point in self._graph.points
            if any(event.kind in kinds for event in events.get(point.node, ()))
            or self._program.enters(point.node, below)
        ]

    def gets_stuck(self, test: ast.If) -> bool:
        """Tell whether one way behind a test steps in its round, and the other clears gradients there and updates nothing."""
        order = self._graph.order(exceptions=False)
        ways = [
            edge.target
            for point in self._graph.within(test.test)
            for edge in self._graph.successors(point)
            if edge.truth is not None and edge.target not in self._graph.within(test.test)
        ]
        stepping = [way for way in ways if leads(order, [way], self._steps, self._trains)]
        others = [way for way in ways if way not in stepping]
        ended = [*self._trains, *self._updates]
        return bool(stepping) and leads(order, others, self._clears, ended)


def _told(program: Program, function: Function, reading: frozenset[Function]) -> set[str]:
    """Return the names in a function that tell of scaled gradients, by what a clip of them returned."""
    events = program.training.of(function)
    clips = {node for node, held in events.items() if any(map(_reads, held))}
    clips |= {call for call in function.calls if program.enters(call, reading)}
    written = [n for n in function.own_nodes if isinstance(n, ast.Assign | ast.AugAssign)]
    found: set[str] = set()
    while True:
        more = {
            name
            for node in written
            if uses(node.value) & found or any(part in clips for part in ast.walk(node.value))
            for name in defs(node)
        }
        if more <= found:
            return found
        found |= more


def _tests(function: Function, told: Collection[str]) -> Iterator[ast.If]:
    return (n for n in function.own_nodes if isinstance(n, ast.If) and uses(n.test) & set(told))
