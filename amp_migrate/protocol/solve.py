"""Runs a machine along every path of a program, through its calls, to a fixpoint."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import EdgeKind, Kind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.memory import Memory
from amp_migrate.protocol.program import Program
from amp_migrate.training.contexts import Context


class Start(Enum):
    """Where a run of a function begins."""

    ENTRY = "entry"
    RESUME = "resume"  # behind a `yield`


class Key(NamedTuple):
    """A run of a function from one state on."""

    function: Function
    start: Start
    state: Hashable


class Here(NamedTuple):
    """A moment of a run: a point, the state of the machine, and what is known of tests."""

    point: Point
    state: Hashable
    known: Assumption


@dataclass
class Summary:
    """The states in which a run ends or suspends, who waits for them, and how each moment was reached."""

    exits: set[Hashable] = field(default_factory=set)
    yields: set[Hashable] = field(default_factory=set)
    waiting: set[tuple[Key, Here]] = field(default_factory=set)
    came: dict[Here, Here | None] = field(default_factory=dict)


class Run:
    """One machine over one program."""

    def __init__(self, program: Program, machine: Machine, memory: Memory) -> None:
        self._program = program
        self._machine = machine
        self._memory = memory
        self._summaries: dict[Key, Summary] = {}
        self._queue: deque[tuple[Key, Here]] = deque()
        self._faults: dict[tuple[Breach, ast.AST], Fault] = {}

    def faults(self) -> list[Fault]:
        """Return the breaches that some path shows, one for each node."""
        for function, called in self._program.entries:
            for state in self._machine.starts(called):
                self._begin(Key(function, Start.ENTRY, state))
        while self._queue:
            self._advance(*self._queue.popleft())
        return list(self._faults.values())

    def _begin(self, key: Key) -> Summary:
        if key not in self._summaries:
            self._summaries[key] = Summary()
            graph = self._program.graph(key.function)
            if key.start is Start.ENTRY:
                state = key.state
                for context in self._program.decorated(key.function):
                    state = self._machine.enter(state, context)
                self._reach(key, Here(graph.entry, state, NOTHING), None)
            else:
                for point in graph.points:
                    if point.kind is Kind.YIELD:
                        self._onward(key, Here(point, key.state, NOTHING), key.state)
        return self._summaries[key]

    def _reach(self, key: Key, here: Here, came: Here | None) -> None:
        summary = self._summaries[key]
        if here not in summary.came:
            summary.came[here] = came
            self._queue.append((key, here))

    def _advance(self, key: Key, here: Here) -> None:
        graph = self._program.graph(key.function)
        if here.point is graph.exit:
            self._end(key, here.state)
        elif here.point.kind is Kind.YIELD:
            self._end(key, here.state, suspended=True)
            self._onward(key, here, here.state)
        elif here.point.kind is Kind.NEXT:
            self._next(key, here)
        else:
            for state in self._after(key, here):
                self._onward(key, here, state)

    def _end(self, key: Key, state: Hashable, suspended: bool = False) -> None:
        summary = self._summaries[key]
        for _ in self._program.decorated(key.function) if not suspended else ():
            state = self._machine.leave(state)
        found = summary.yields if suspended else summary.exits
        if state not in found:
            found.add(state)
            self._queue.extend(summary.waiting)

    def _onward(self, key: Key, here: Here, state: Hashable, kinds: Iterable[EdgeKind] = ()) -> None:
        """Go on along the edges out of a point, those of some kinds if any are named."""
        for edge in self._program.graph(key.function).successors(here.point):
            if edge.kind is EdgeKind.EXCEPTION or (kinds and edge.kind not in kinds):
                continue
            known = self._memory.along(key.function, edge, here.known)
            if known is not None:
                self._reach(key, Here(edge.target, state, known), here)

    def _next(self, key: Key, here: Here) -> None:
        """Take the next item of a loop, which may run a generator of the project up to its next `yield`."""
        runs = self._generators(here.point)
        more, over = ({here.state}, {here.state}) if not runs else (set(), set())
        for function in runs:
            for start in Start:
                summary = self._wait(key, here, Key(function, start, here.state))
                more |= summary.yields
                over |= summary.exits
        for state in more:
            self._onward(key, here, state, (EdgeKind.TRUE, EdgeKind.NEXT, EdgeKind.LOOP))
        for state in over:
            self._onward(key, here, state, (EdgeKind.FALSE,))

    def _generators(self, point: Point) -> list[Function]:
        node = point.node
        call = node.iter if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else None
        if not isinstance(call, ast.Call):
            return []
        return [f for f in self._program.callees(call) if self._program.suspends(f)]

    def _wait(self, key: Key, here: Here, of: Key) -> Summary:
        summary = self._begin(of)
        summary.waiting.add((key, here))
        return summary

    def _after(self, key: Key, here: Here) -> Iterable[Hashable]:
        """Return the states behind a point, what it calls included."""
        point, function = here.point, key.function
        if point.kind in (Kind.ENTER, Kind.LEAVE) and isinstance(point.node, ast.withitem):
            return self._context(key, here, point.node)
        states: set[Hashable] = {here.state}
        if point.kind is Kind.CALL and isinstance(point.node, ast.Call):
            states = self._call(key, here, point.node)
        if point.kind in (Kind.CALL, Kind.LOAD, Kind.STORE, Kind.OPERATE, Kind.DELETE):
            for event in self._program.events(function, point.node):
                moved: set[Hashable] = set()
                for state in states:
                    after = self._machine.move(state, event)
                    moved.update(after.states)
                    for breach in after.breaches:
                        self._fault(key, here, breach, len(event.optimizers or ()) == 1)
                states = moved
        return states

    def _call(self, key: Key, here: Here, call: ast.Call) -> set[Hashable]:
        callees = self._program.callees(call)
        if not callees:
            states = {here.state}
            for function in self._program.handed(call):
                states |= self._wait(key, here, Key(function, Start.ENTRY, here.state)).exits
            return states
        states = set()
        for function in callees:
            if self._program.suspends(function):
                states.add(here.state)
                continue
            states |= self._wait(key, here, Key(function, Start.ENTRY, here.state)).exits
        everything = self._program.project.callees(call)
        if len(callees) < len(everything):
            states.add(here.state)
        return states

    def _context(self, key: Key, here: Here, item: ast.withitem) -> Iterable[Hashable]:
        entering = here.point.kind is Kind.ENTER
        context = self._program.context(key.function, item.context_expr)
        if context is not None:
            return [self._changed(here.state, context, entering)]
        call = item.context_expr
        runs = self._program.callees(call) if isinstance(call, ast.Call) else []
        states: set[Hashable] = set()
        for function in runs:
            if self._program.suspends(function):
                start = Start.ENTRY if entering else Start.RESUME
                summary = self._wait(key, here, Key(function, start, here.state))
                states |= summary.yields if entering else summary.exits
        return states if runs and any(map(self._program.suspends, runs)) else [here.state]

    def _changed(self, state: Hashable, context: Context, entering: bool) -> Hashable:
        return self._machine.enter(state, context) if entering else self._machine.leave(state)

    def _fault(self, key: Key, here: Here, breach: Breach, certain: bool) -> None:
        found = (breach, here.point.node)
        if found not in self._faults:
            way = self._way(key, here)
            self._faults[found] = Fault(breach, way[-1], way, certain)

    def _way(self, key: Key, here: Here) -> tuple[Place, ...]:
        """Return the places of the events on one path to a moment, from the beginning of its function on."""
        path = key.function.module.path
        came = self._summaries[key].came
        lines = [here.point.line]
        at = came.get(here)
        while at is not None:
            calls = isinstance(at.point.node, ast.Call) and bool(self._program.callees(at.point.node))
            if (calls or self._program.events(key.function, at.point.node)) and lines[-1] != at.point.line:
                lines.append(at.point.line)
            at = came.get(at)
        return tuple(Place(path, line) for line in reversed(lines[:8]))
