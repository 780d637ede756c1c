"""Runs a machine along every path of a program, through its calls, to a fixpoint."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator

from amp_migrate.facts.closure import closure
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Edge, EdgeKind, Kind
from amp_migrate.project import Function
from amp_migrate.protocol.code.exceptions import RAISED
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.faults import Fault
from amp_migrate.protocol.machine import FollowsTests, Machine
from amp_migrate.protocol.run.budget import Budget, Patience
from amp_migrate.protocol.run.matter import Matter
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.runs import Breached, Here, Key, Sought, Start, State, Summary
from amp_migrate.protocol.run.ways import Ways
from amp_migrate.protocol.run.within import Within
from amp_migrate.training.events import Event
from amp_migrate.training.events import Kind as Happens

_MORE = (EdgeKind.TRUE, EdgeKind.NEXT, EdgeKind.LOOP)
_OVER = (EdgeKind.FALSE,)
_FAILS = (EdgeKind.EXCEPTION,)
_USUAL = frozenset(EdgeKind) - {EdgeKind.EXCEPTION}
_HAPPENS = (Kind.CALL, Kind.LOAD, Kind.STORE, Kind.OPERATE, Kind.DELETE)


class Run:
    """One machine over a program, or over those in it that begin at some of its entries and run some of its files.

    With a `budget`, it ends once that is used up: what it has shown by then is so, and there may be more. With breaches that
    are `sought`, each at its node, it ends once all of them are shown.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        memory: Memory,
        span: Span,
        budget: Budget | None = None,
        sought: Collection[Sought] | None = None,
    ) -> None:
        self._program = program
        self._machine = machine
        self._memory = memory
        self._span = span
        self._budget = budget
        self._sought = None if sought is None else set(sought)
        self._patience = Patience(wears=memory.forgets)
        self.summaries: dict[Key, Summary] = {}
        self._begun: dict[tuple[Function, Start, Hashable], set[Assumption]] = {}
        self._queue: OrderedDict[tuple[Key, Here], None] = OrderedDict()
        self._breached: dict[Sought, Breached] = {}
        self._absent: dict[Edge, Event | None] = {}
        self._called: dict[ast.Call, tuple[bool, bool]] = {}
        self._matter = Matter(program, machine)
        self._within = Within(program, machine, self._matter, memory, self._wait, self._span)
        self._tests = machine if isinstance(machine, FollowsTests) else None

    def faults(self) -> list[Fault]:
        """Return the breaches that some path shows, one for each node."""
        ways = Ways(self._program, self.summaries)
        led = ((breached, ways.places(breached.key, breached.here)) for breached in self.breached())
        return [Fault(b.breach, way[-1], way, b.certain) for b, way in led]

    def leading_to(self, functions: Iterable[Function]) -> Span:
        """Return the same programs from those entries alone from which this run came to one of some functions."""
        callers: dict[Function, set[Function]] = {}
        for key, summary in self.summaries.items():
            waiting = {up.function for up, _ in summary.waiting}
            callers.setdefault(key.function, set()).update(waiting)
        above = set(closure(functions, lambda function: callers.get(function, ())))
        return self._span._replace(entries=tuple(e for e in self._span.entries if e[0] in above))

    def breached(self) -> list[Breached]:
        """Return the breaches that some path shows, one for each node, with the moments of it."""
        for function, called in self._span.entries:
            for state in self._machine.starts(called):
                if function in self._matter.of(self._matter.asleep(state)):
                    self._begin(Key(function, Start.ENTRY, State(state, NOTHING)))
        while self._queue and self._goes_on():
            moment, _ = self._queue.popitem(last=False)
            self._advance(*moment)
        return list(self._breached.values())

    def _goes_on(self) -> bool:
        shown = self._sought is not None and self._sought <= self._breached.keys()
        return not shown and (self._budget is None or self._budget.allows())

    def _begin(self, key: Key) -> Summary:
        begun = self._begun.setdefault((key.function, key.start, key.state.machine), set())
        if key not in self.summaries:
            apart = self._patience.weighed(len(begun))
            known = self._memory.begun(key.function, key.state.known, apart)
            key = key._replace(state=key.state._replace(known=known))
        begun.add(key.state.known)
        if key not in self.summaries:
            self.summaries[key] = Summary()
            graph, entered = self._program.graph(key.function), self._entered(key)
            if key.start is Start.ENTRY:
                self._reach(key, self.summaries[key], Here(graph.entry, entered), None)
            else:
                for point in graph.points:
                    if point.kind is Kind.YIELD:
                        self._onward(key, Here(point, entered), [entered])
        return self.summaries[key]

    def _reach(self, key: Key, summary: Summary, here: Here, came: Here | None) -> None:
        if here in summary.came:
            return
        at = here.point, here.state.machine, here.turned
        told_apart = summary.apart.get(at, 0)
        if told_apart >= self._memory.most and not self._memory.forgets:
            return
        known, apart = here.state.known, self._patience.weighed(told_apart)
        known = self._memory.forgotten(known, apart, key.state.known)
        if known is not here.state.known:
            here = here._replace(state=here.state._replace(known=known))
            if here in summary.came:
                return
        summary.apart[at] = told_apart + 1
        summary.came[here] = came
        self._patience.spend()
        self._queue[key, here] = None

    def _advance(self, key: Key, here: Here) -> None:
        graph = self._program.graph(key.function)
        summary = self.summaries[key]
        if here.point is graph.exit:
            self._end(key, self._left(key, here.state), summary.exits)
        elif here.point is graph.raised:
            self._end(key, self._left(key, here.state), summary.raises)
        elif here.point.kind is Kind.YIELD:
            self._end(key, self._left(key, here.state), summary.yields)
            if not summary.waiting:  # whoever goes on with it is out of sight
                self._onward(key, here, [here.state])
        elif here.point.kind is Kind.NEXT:
            self._next(key, here)
        else:
            self._onward(key, here, self._after(key, here))
            self._onward(key, here, self._failed(key, here), _FAILS)

    def _entered(self, key: Key) -> State:
        """Return the state in which a function begins or goes on, in the contexts around it."""
        machine = key.state.machine
        for context in self._program.decorated(key.function):
            machine = self._machine.enter(machine, context)
        return State(machine, key.state.known)

    def _left(self, key: Key, state: State) -> State:
        machine = state.machine
        for context in reversed(self._program.decorated(key.function)):
            machine = self._machine.leave(machine, context)
        return State(machine, state.known)

    def _end(self, key: Key, state: State, found: dict[State, None]) -> None:
        if state not in found:
            found[state] = None
            self._queue.update(self.summaries[key].waiting)

    def _onward(
        self, key: Key, here: Here, states: Collection[State], kinds: Collection[EdgeKind] = _USUAL
    ) -> None:
        """Go on along the edges of some kinds out of a point."""
        if not states:
            return
        summary = self.summaries[key]
        for edge in self._memory.course.edges(key.function, here.point):
            if edge.kind not in kinds:
                continue
            ends = self._memory.turns.ends(key.function, edge)
            for state in states:
                known = self._memory.along(key.function, edge, state.known)
                if known is not None:
                    for machine in self._told(key.function, edge, state.machine):
                        there = Here(edge.target, State(machine, known), ends)
                        self._reach(key, summary, there, here)

    def _told(self, function: Function, edge: Edge, state: Hashable) -> Iterable[Hashable]:
        """Return the states in which a test comes out as on an edge."""
        if self._tests is not None:
            over = edge.source.kind is Kind.NEXT and edge.kind in _OVER
            state = self._tests.ended(state) if over else state
            state = state if edge.test is None else self._tests.tested(state, edge.test)
        if edge.test is None:
            return (state,)
        if edge not in self._absent:
            self._absent[edge] = self._program.training.absent(
                function, edge.test, bool(edge.truth)
            )
        told = self._absent[edge]
        return (state,) if told is None else self._machine.move(state, told, True).states

    def _next(self, key: Key, here: Here) -> None:
        """Take the next item of a loop, which may run a generator of the project up to its next `yield`."""
        node = here.point.node
        if self._memory.visits.over_optimizers(key.function, node):
            self._onward(key, here, self._visited(key, here), _OVER if here.turned else _MORE)
            return
        if self._memory.turns.once(key.function, node):
            self._onward(key, here, [here.state], _OVER if here.turned else _MORE)
            return
        more, over = self._within.items(key, here)
        self._onward(key, here, list(self._taken(key, here, more)), _MORE)
        if here.turned or not self._memory.turns.some(key.function, node):
            self._onward(key, here, over, _OVER)

    def _taken(self, key: Key, here: Here, states: Iterable[State]) -> Iterator[State]:
        """Yield the states in which a loop has taken an item."""
        for state in states:
            loop, known = here.point.node, state.known
            taken = self._memory.taken(key.function, loop, known, here.turned)
            if taken is not None:
                yield State(state.machine, taken)

    def _visited(self, key: Key, here: Here) -> dict[State, None]:
        """Return the states in which a loop comes to one optimizer: others may have had their turns before."""
        states: dict[State, None] = {here.state: None}
        for event in self._memory.visits.updates(key.function, here.point.node):
            for state in list(states) if not here.turned else ():
                after = self._machine.move(state.machine, event, False)
                states |= {State(machine, state.known): None for machine in after.states}
        return states

    def _wait(self, key: Key, here: Here, run: Key) -> Summary:
        summary = self._begin(run)
        summary.waiting[key, here] = None
        return summary

    def _after(self, key: Key, here: Here) -> Collection[State]:
        """Return the states behind a point, what it calls included."""
        point, function = here.point, key.function
        states = self._within.after(key, here)
        if point.kind in _HAPPENS:
            for event in self._program.happens(function, point.node):
                runs = event.kind in (Happens.FORWARD, Happens.SHARED)
                begun = event.beside or runs
                before = self._moved(key, here, event, (here.state,)) if begun else {}
                if event.beside:
                    states = {**states, **before}
                elif before.keys() != {here.state}:
                    states = self._moved(key, here, event, states, told=not runs)
        return states

    def _moved(
        self, key: Key, here: Here, event: Event, states: Iterable[State], *, told: bool = True
    ) -> dict[State, None]:
        """Return what an event makes of states; what runs networks is `told` of where it begins, before what its functions do."""
        visited = self._memory.visits.of_visited(key.function, event)
        moved: dict[State, None] = {}
        for state in states:
            for exact in self._memory.exact(event, state.known):
                after = self._machine.move(state.machine, exact, visited)
                moved.update({State(m, state.known): None for m in after.states})
                for breach in after.breaches if told else ():
                    found = Breached(breach, key, here, event, visited or exact.certain)
                    self._breached.setdefault((breach, here.point.node), found)
        return moved

    def _failed(self, key: Key, here: Here) -> Collection[State]:
        """Return the states in which a call leaves a point by an exception that the training survives."""
        node = here.point.node
        if not isinstance(node, ast.Call) or not self._memory.course.raises(
            key.function, here.point
        ):
            return ()
        called, followed = self._runs_of(node)
        states = self._within.raised(key, here, node)
        if not followed:
            states[State(here.state.machine, here.state.known.without_term(RAISED))] = None
        elif not called:
            machine = here.state.machine
            for event in self._program.events(key.function, node):
                machine = self._machine.failed(machine, event)
            raised = self._program.exceptions.outside(node)
            states[State(machine, here.state.known.with_fact(RAISED, raised))] = None
        return states

    def _runs_of(self, call: ast.Call) -> tuple[bool, bool]:
        """Tell whether a call runs functions of the project, and whether all of them are followed."""
        if call not in self._called:
            called = self._span.near(self._program.calls.of(call))
            self._called[call] = bool(called), self._program.relevant.issuperset(called)
        return self._called[call]
