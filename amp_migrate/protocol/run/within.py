"""What the calls, contexts and loops of a function do to a state: they run other functions."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import TAKES, Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.dispatch import Dispatch
from amp_migrate.protocol.run.frames import Frames
from amp_migrate.protocol.run.matter import Matter
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.runs import (
    Awaited,
    Here,
    Key,
    Start,
    State,
    States,
    Summary,
    Wait,
    stops,
)
from amp_migrate.training.contexts import Choice, Context

_BEGINS = ("__enter__", "__aenter__")


class Within:
    """Takes the states of one machine through the functions that a point runs.

    A call is gone over again when a function that it runs comes to new ends; it then answers with the states behind
    those alone. What it awaits is kept as long as the run.
    """

    def __init__(
        self,
        program: Program,
        machine: Machine,
        matter: Matter,
        memory: Memory,
        wait: Wait,
        span: Span,
    ) -> None:
        self._program = program
        self._span = span
        self._memory = memory
        self._machine = machine
        self._frames = Frames(machine)
        self._wait = wait
        self._matter = matter
        self._dispatch = Dispatch(program, memory, matter, span)
        self._awaited: dict[tuple[Key, Here], list[Awaited]] = {}
        self._aside: dict[tuple[Key, Here], list[Awaited]] = {}

    def after(self, key: Key, here: Here) -> States:
        """Return the states behind what a point runs, its own events apart."""
        point = here.point
        if point.kind in (Kind.ENTER, Kind.LEAVE) and isinstance(point.node, ast.withitem):
            return self._context(key, here, point.node)
        if point.kind is Kind.CALL and isinstance(point.node, ast.Call):
            return self._call(key, here, point.node)
        if point.kind is Kind.LOAD:
            return self._unnamed(key, here, self._span.near(self._program.runs(point.node)))
        return {here.state: None}

    def items(self, key: Key, here: Here) -> tuple[States, States]:
        """Return the states in which a loop gets an item, and those in which none is left."""
        node = here.point.node
        made = node.iter if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) else None
        runs = self._suspended(made)
        if not runs:
            return self._given_by_object(key, here)
        more, over = dict[State, None](), dict[State, None]()
        for call, function in runs:
            for start in Start:
                summary = self._resumed(key, here, call, function, start, call is made)
                at = (here.state, start, call is made)
                more |= self._given(call, function, summary.yields, *at)
                over |= self._given(call, function, summary.exits, *at)
        return more, over

    def _given_by_object(self, key: Key, here: Here) -> tuple[States, States]:
        """Return the same of a loop to which a method of an object in sight gives each item, until it raises."""
        before, more, over = here.state.machine, dict[State, None](), dict[State, None]()
        giving = self._span.near(self._memory.turns.giving(here.point.node))
        for function in giving:
            known = self._memory.behind(function, here.state.known)
            run = Key(
                function,
                Start.ENTRY,
                State(self._frames.begun(key.function, before, None), NOTHING),
            )
            summary = self._wait(key, here, run)
            more |= {
                State(self._frames.ended(e.machine, before), known): None for e in summary.exits
            }
            ended = filter(stops, summary.raises)
            over |= {State(self._frames.ended(e.machine, before), known): None for e in ended}
        return (more, over) if giving else ({here.state: None}, {here.state: None})

    def raised(self, key: Key, here: Here, call: ast.Call) -> States:
        """Return the states in which exceptions leave the functions that a call runs."""
        states: States = {}
        for awaited in self._awaits(key, here, call):
            run, summary = awaited.function, awaited.summary
            if run is not None and summary is not None and awaited.raises < len(summary.raises):
                before = State(here.state.machine, awaited.known)
                states |= self._back(call, run, awaited.raised(), before)
        return states

    def _suspended(self, made: ast.expr | None) -> list[tuple[ast.Call, Function]]:
        """Return the generators of the programs that an expression makes, each with the call that names it."""
        runs = self._program.suspended(made) if isinstance(made, ast.Call) else []
        return [(call, function) for call, function in runs if self._span.near([function])]

    def _resumed(
        self,
        key: Key,
        here: Here,
        call: ast.Call,
        function: Function,
        start: Start,
        here_made: bool,
    ) -> Summary:
        """Return what a generator does from a start on; of one that a function made, the path knows nothing."""
        known = here.state.known if here_made else NOTHING
        return self._called(key, here, call, function, known, start)

    def _given(
        self,
        call: ast.Call,
        function: Function,
        ends: Iterable[State],
        before: State,
        start: Start,
        here_made: bool,
    ) -> States:
        """Return the states behind a generator, which somebody else may have made."""
        if here_made:
            return self._back(call, function, ends, before, start)
        known, machine = self._memory.behind(function, before.known), before.machine
        return {State(self._frames.ended(end.machine, machine, start), known): None for end in ends}

    def _called(
        self,
        key: Key,
        here: Here,
        call: ast.Call,
        function: Function,
        known: Assumption,
        start: Start,
    ) -> Summary:
        begun = self._frames.begun(key.function, here.state.machine, call, start, known)
        state = State(begun, self._memory.into(call, function, known))
        return self._wait(key, here, Key(function, start, state))

    def _back(
        self,
        call: ast.Call,
        function: Function,
        ends: Iterable[State],
        before: State,
        start: Start = Start.ENTRY,
    ) -> States:
        states: States = {}
        for end in ends:
            known = self._memory.back(call, function, end.known, before.known)
            if known is not None:
                left = self._frames.returned(end.machine, before.machine, function, start)
                states[State(left, known)] = None
        return states

    def _unnamed(self, key: Key, here: Here, runs: list[Function]) -> States:
        """Return the states behind functions of which one runs without being called by name."""
        before = here.state.machine
        states: States = {}
        awaiting = self._aside.get((key, here))
        if awaiting is None:
            awaiting = self._aside[key, here] = []
            followed = self._matter.of(self._matter.asleep(before))
            for function in runs:
                behind = self._memory.behind(function, here.state.known)
                if function not in followed:
                    states[State(before, behind)] = None
                    continue
                run = Key(
                    function,
                    Start.ENTRY,
                    State(self._frames.begun(key.function, before, None), NOTHING),
                )
                awaiting.append(Awaited(function, behind, self._wait(key, here, run)))
        for awaited in awaiting:
            ends = awaited.exited()
            states |= {
                State(self._frames.ended(end.machine, before), awaited.known): None for end in ends
            }
        return states if runs else {here.state: None}

    def _call(self, key: Key, here: Here, call: ast.Call) -> States:
        if not self._program.calls.of(call) and not self._awaited.get((key, here)):
            entered = self._program.entered(key.function, call)
            if entered is not None:
                machine = self._machine.enter(here.state.machine, entered)
                return {State(machine, here.state.known): None}
            given = self._span.near(self._program.handed(call))
            named = self._memory.of_name(call, given, here.state.known)
            handed = [function for function in named if function is not None]
            return {here.state: None} | (self._unnamed(key, here, handed) if handed else {})
        states: States = {}
        for awaited in self._awaits(key, here, call):
            run, summary = awaited.function, awaited.summary
            if summary is not None and awaited.exits == len(summary.exits):
                continue  # most of many functions have come to no new end
            before = State(here.state.machine, awaited.known)
            if run is not None and summary is not None:
                states |= self._back(call, run, awaited.exited(), before)
                continue
            states[before] = None
            if run is not None:
                states |= self._back(call, run, self._taken(key, here, call, run), before)
        return states

    def _awaits(self, key: Key, here: Here, call: ast.Call) -> list[Awaited]:
        """Return what a call may run at a moment, begun when it is first asked for."""
        asked = key, here
        found = self._awaited.get(asked)
        if found is None:
            found = self._awaited[asked] = [
                Awaited(
                    run,
                    known,
                    None
                    if run is None or self._program.suspends(run)
                    else self._called(key, here, call, run, known, Start.ENTRY),
                )
                for run, known in self._dispatch.of(key.function, here, call)
            ]
        return found

    def _taken(self, key: Key, here: Here, call: ast.Call, function: Function) -> States:
        """Return where a generator stops or ends that is handed to what takes all of it, not to a loop or `with`."""
        up = key.function.module.tree.parent(call)
        if isinstance(up, ast.Return) and self._program.hands_on(key.function):
            return {}
        if isinstance(up, TAKES):
            return {}
        first = self._called(key, here, call, function, here.state.known, Start.ENTRY)
        found, queue = first.exits | first.yields, list(first.yields)
        for state in queue:
            more = self._wait(key, here, Key(function, Start.RESUME, state))
            queue += [state for state in more.yields if state not in found]
            found = found | more.exits | more.yields
        return found

    def _context(self, key: Key, here: Here, item: ast.withitem) -> States:
        entering = here.point.kind is Kind.ENTER
        context = self._program.context(key.function, item.context_expr)
        if context is Context.CASTS and self._memory.handed.off(
            item.context_expr, here.state.known
        ):
            context = Context.NO_CASTS
        if context is not None:
            machine = self._changed(here.state.machine, context, entering)
            return {State(machine, here.state.known): None}
        choice = self._program.decides(key.function, item.context_expr)
        if choice is not None:
            return self._chosen(key.function, here.state, choice, entering)
        held = self._span.near(self._program.runs(item))
        methods = [f for f in held if (f.name in _BEGINS) is entering]
        if methods:
            return self._unnamed(key, here, methods)
        made, start = item.context_expr, Start.ENTRY if entering else Start.RESUME
        runs = self._suspended(made)
        states: States = {}
        for call, function in runs:
            summary = self._resumed(key, here, call, function, start, call is made)
            ends = summary.yields if entering else summary.exits
            states |= self._given(call, function, ends, here.state, start, call is made)
        return states if runs else {here.state: None}

    def _chosen(self, function: Function, state: State, choice: Choice, entering: bool) -> States:
        """Return the states inside or behind a context that an expression chooses from two."""
        states: States = {}
        both = (choice.true, choice.false)
        left = None if entering else self._frames.innermost(state.machine, both)
        for context, truth in zip(both, (True, False), strict=True):
            known = self._memory.told(function, choice.asked, state.known, truth)
            if known is not None and left in (None, context):
                states[State(self._changed(state.machine, context, entering), known)] = None
        return states

    def _changed(self, state: Hashable, context: Context, entering: bool) -> Hashable:
        machine = self._machine
        return machine.enter(state, context) if entering else machine.leave(state, context)
