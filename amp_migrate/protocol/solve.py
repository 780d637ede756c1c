"""Runs a machine along every path of a program, through its calls, to a fixpoint."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Kind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.memory import Memory
from amp_migrate.protocol.program import Program
from amp_migrate.protocol.runs import Breached, Here, Key, Start, State, Summary
from amp_migrate.protocol.ways import Ways
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Event

_TURNS = (EdgeKind.LOOP, EdgeKind.CONTINUE)
_MORE = (EdgeKind.TRUE, EdgeKind.NEXT, EdgeKind.LOOP)
_OVER = (EdgeKind.FALSE,)
_HAPPENS = (Kind.CALL, Kind.LOAD, Kind.STORE, Kind.OPERATE, Kind.DELETE)


class Run:
    """One machine over one program."""

    def __init__(self, program: Program, machine: Machine, memory: Memory) -> None:
        self._program = program
        self._machine = machine
        self._memory = memory
        self.summaries: dict[Key, Summary] = {}
        self._begun: dict[tuple[Function, Start, Hashable], set[Assumption]] = {}
        self._queue: deque[tuple[Key, Here]] = deque()
        self._breached: dict[tuple[Breach, ast.AST], Breached] = {}

    def faults(self) -> list[Fault]:
        """Return the breaches that some path shows, one for each node."""
        ways = Ways(self._program, self.summaries)
        found = []
        for breach, key, here, _, certain in self.breached():
            way = ways.lines(key, here)
            found.append(Fault(breach, way[-1], way, certain))
        return found

    def breached(self) -> list[Breached]:
        """Return the breaches that some path shows, one for each node, with the moments of it."""
        for function, called in self._program.entries:
            for state in self._machine.starts(called):
                self._begin(Key(function, Start.ENTRY, State(state, NOTHING)))
        while self._queue:
            self._advance(*self._queue.popleft())
        return list(self._breached.values())

    def _begin(self, key: Key) -> Summary:
        begun = self._begun.setdefault((key.function, key.start, key.state.machine), set())
        if len(begun) >= self._memory.most and key not in self.summaries:
            key = key._replace(state=State(key.state.machine, NOTHING))
        begun.add(key.state.known)
        if key not in self.summaries:
            self.summaries[key] = Summary()
            graph = self._program.graph(key.function)
            if key.start is Start.ENTRY:
                state = key.state.machine
                for context in self._program.decorated(key.function):
                    state = self._machine.enter(state, context)
                self._reach(key, Here(graph.entry, State(state, key.state.known)), None)
            else:
                for point in graph.points:
                    if point.kind is Kind.YIELD:
                        self._onward(key, Here(point, key.state), [key.state])
        return self.summaries[key]

    def _reach(self, key: Key, here: Here, came: Here | None) -> None:
        summary = self.summaries[key]
        if here in summary.came:
            return
        told_apart = summary.apart.setdefault((here.point, here.state.machine, here.turned), 0)
        if told_apart >= self._memory.most:
            if not self._memory.forgets:
                return
            here = here._replace(state=State(here.state.machine, NOTHING))
            if here in summary.came:
                return
        summary.apart[here.point, here.state.machine, here.turned] = told_apart + 1
        summary.came[here] = came
        self._queue.append((key, here))

    def _advance(self, key: Key, here: Here) -> None:
        graph = self._program.graph(key.function)
        if here.point is graph.exit:
            self._end(key, here.state)
        elif here.point.kind is Kind.YIELD:
            self._end(key, here.state, suspended=True)
            self._onward(key, here, [here.state])
        elif here.point.kind is Kind.NEXT:
            self._next(key, here)
        else:
            self._onward(key, here, self._after(key, here))

    def _end(self, key: Key, state: State, suspended: bool = False) -> None:
        summary = self.summaries[key]
        machine = state.machine
        for _ in self._program.decorated(key.function) if not suspended else ():
            machine = self._machine.leave(machine)
        found = summary.yields if suspended else summary.exits
        state = State(machine, state.known)
        if state not in found:
            found[state] = None
            self._queue.extend(summary.waiting)

    def _onward(
        self, key: Key, here: Here, states: Iterable[State], kinds: tuple[EdgeKind, ...] = ()
    ) -> None:
        """Go on along the edges out of a point, those of some kinds if any are named."""
        for edge in self._program.edges(key.function, here.point):
            if kinds and edge.kind not in kinds:
                continue
            for state in states:
                known = self._memory.along(key.function, edge, state.known)
                if known is not None:
                    then = Here(edge.target, State(state.machine, known), _turns(edge))
                    self._reach(key, then, here)

    def _next(self, key: Key, here: Here) -> None:
        """Take the next item of a loop, which may run a generator of the project up to its next `yield`."""
        node = here.point.node
        if self._program.visits_optimizers(key.function, node):
            self._onward(key, here, [here.state], _OVER if here.turned else _MORE)
            return
        runs = self._generators(here.point)
        first = {here.state: None} if not runs else {}
        more, over = dict(first), dict(first)
        for call, function in runs:
            for start in Start:
                summary = self._wait(key, here, call, function, start)
                more |= self._back(call, function, summary.yields, here.state)
                over |= self._back(call, function, summary.exits, here.state)
        self._onward(key, here, more, _MORE)
        self._onward(key, here, over, _OVER)

    def _generators(self, point: Point) -> list[tuple[ast.Call, Function]]:
        node = point.node
        call = node.iter if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else None
        if not isinstance(call, ast.Call):
            return []
        return [(call, f) for f in self._program.callees(call) if self._program.suspends(f)]

    def _wait(
        self,
        key: Key,
        here: Here,
        call: ast.Call,
        function: Function,
        start: Start = Start.ENTRY,
        known: Assumption | None = None,
    ) -> Summary:
        into = self._memory.into(call, function, here.state.known if known is None else known)
        summary = self._begin(Key(function, start, State(here.state.machine, into)))
        summary.waiting[key, here] = None
        return summary

    def _back(
        self, call: ast.Call, function: Function, ends: Iterable[State], before: State
    ) -> dict[State, None]:
        return {
            State(end.machine, self._memory.back(call, function, end.known, before.known)): None
            for end in ends
        }

    def _after(self, key: Key, here: Here) -> Iterable[State]:
        """Return the states behind a point, what it calls included."""
        point, function = here.point, key.function
        if point.kind in (Kind.ENTER, Kind.LEAVE) and isinstance(point.node, ast.withitem):
            return self._context(key, here, point.node)
        states: dict[State, None] = {here.state: None}
        if point.kind is Kind.CALL and isinstance(point.node, ast.Call):
            states = self._call(key, here, point.node)
        if point.kind in _HAPPENS:
            for event in self._program.events(function, point.node):
                visited = self._program.of_visited(function, event)
                moved: dict[State, None] = {}
                for state in states:
                    exact = self._exact(event, state.known)
                    after = self._machine.move(state.machine, exact, visited)
                    moved.update({State(m, state.known): None for m in after.states})
                    for breach in after.breaches:
                        certain = visited or len(event.optimizers or ()) == 1
                        found = Breached(breach, key, here, event, certain)
                        self._breached.setdefault((breach, here.point.node), found)
                states = moved
        return states

    def _exact(self, event: Event, known: Assumption) -> Event:
        """Return a backward with what the path knows of its loss."""
        if event.scaled is not None or event.loss is None:
            return event
        scaled = self._memory.loss(event.loss, known)
        return event if scaled is None else replace(event, scaled=scaled)

    def _call(self, key: Key, here: Here, call: ast.Call) -> dict[State, None]:
        states: dict[State, None] = {}
        if not self._program.project.callees(call):
            states[here.state] = None
            for function in self._program.handed(call):
                summary = self._wait(key, here, call, function)
                states |= {State(end.machine, here.state.known): None for end in summary.exits}
            return states
        for run, known in self._dispatched(call, here.state.known):
            before = State(here.state.machine, known)
            if run is None or self._program.suspends(run):
                states[before] = None
            else:
                summary = self._wait(key, here, call, run, known=known)
                states |= self._back(call, run, summary.exits, before)
        return states

    def _dispatched(
        self, call: ast.Call, known: Assumption
    ) -> Iterator[tuple[Function | None, Assumption]]:
        """Yield what a call may run, None for a function without events, and what is known of its object then."""
        every = self._program.project.callees(call)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        chosen = self._program.methods(call)
        if receiver is None or len(chosen) < 2:
            for function in every:
                yield (function if function in self._program.relevant else None), known
            return
        for cls, function in chosen:
            refined = self._memory.of_class(receiver, cls, known)
            if refined is not None:
                yield (function if function in self._program.relevant else None), refined

    def _context(self, key: Key, here: Here, item: ast.withitem) -> Iterable[State]:
        entering = here.point.kind is Kind.ENTER
        context = self._program.context(key.function, item.context_expr)
        if context is not None:
            machine = self._changed(here.state.machine, context, entering)
            return [State(machine, here.state.known)]
        call = item.context_expr
        runs = self._program.callees(call) if isinstance(call, ast.Call) else []
        runs = [function for function in runs if self._program.suspends(function)]
        states: dict[State, None] = {}
        for function in runs:
            assert isinstance(call, ast.Call)
            start = Start.ENTRY if entering else Start.RESUME
            summary = self._wait(key, here, call, function, start)
            ends = summary.yields if entering else summary.exits
            states |= self._back(call, function, ends, here.state)
        return states if runs else [here.state]

    def _changed(self, state: Hashable, context: Context, entering: bool) -> Hashable:
        return self._machine.enter(state, context) if entering else self._machine.leave(state)


def _turns(edge: Edge) -> bool:
    return edge.kind in _TURNS and edge.target.kind is Kind.NEXT
