"""Functions that a call with Apex on says more of: that initialize themselves, or that nothing is seen to call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from amp_migrate.check.apex.astray import Astray
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import OFF, ON, Initialized
from amp_migrate.check.apex.steady import stays
from amp_migrate.check.casts.callables import Replaced, counterparts, spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import (
    CAST,
    SWITCHED,
    UNCAST,
    Where,
    differs,
    told_above,
    where,
)
from amp_migrate.check.casts.enabled import asks_scaler
from amp_migrate.check.events.claims import UNCAST as LEFT_UNCAST
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.closure import closure
from amp_migrate.facts.paths import all_given
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.flags.setting import read, setters
from amp_migrate.training.origins.constants import settled

_SETS = (Kind.CALL, Kind.DELETE, Kind.STORE)
Begun = Mapping[Function, frozenset[Casts]]
_Ran = tuple[Where, ast.Call, Function]


@dataclass(frozen=True, eq=False, slots=True)
class Again:
    """Both texts, where casts may be on when each function of one begins, and what a rule of the run says of."""

    old: Side
    new: Side
    apex: Initialized
    starts: Mapping[Function, States]
    native: Casting
    begun: Begun
    reported: Callable[[Where], bool]
    claims: Claims
    replaced: Replaced

    def differences(
        self, runs: Sequence[_Ran], forward: Callable[[Where], bool], networks: Collection[int]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what differs by how calls lead to some that run networks, if they are forwards."""
        yield from self._switched(runs, forward)
        yield from self._entered(runs, forward)
        yield from self._astray(networks)

    def called(self, facts: Facts) -> Iterator[tuple[Function, Casting]]:
        """Yield the functions that may initialize and are called with AMP on, each with the casts of that call.

        What the call settles is known by the constants that it gives.
        """
        project = self.old.project
        for _, call in self._on():
            for callee in project.callees(call):
                if callee.node is None or not self.apex.leads(callee):
                    continue
                if (site := project.site(call, callee)) is not None:
                    known = callee, settled(project, site, callee)
                    yield callee, Casting(self.new.program, Facts((known, *facts.stated)))

    def _astray(self, networks: Collection[int]) -> Iterator[tuple[Key, Difference]]:
        """Yield the forwards without casts that a call which nothing is seen to run may lead to with AMP on."""
        astray = Astray(self.old.program)
        wrapped = self.replaced.networks if networks else frozenset()
        for function, call in self._on():
            for stray in astray.of(function, call, networks):
                if wrapped and self._is_given(function, call, wrapped):
                    continue
                inside = (*stray.around, (stray.function, stray.call))
                at = where(stray.function, stray.call)
                if any(self._casts(f, c) for f, c in inside) or self.reported(at):
                    continue
                by = Place(function.module.path, call.lineno)
                yield differs(f"is not cast, which Apex did where {by} runs it:", at, stray.call)

    def _is_given(self, function: Function, call: ast.Call, groups: Collection[int]) -> bool:
        """Tell whether what a call of the old text is now is given one of some objects."""
        values = self.new.project.values
        return any(
            values.groups(now.module, argument) & set(groups)
            for now in self.new.functions.get(key(function), ())
            for node in now.all_calls
            if spelled(node) == spelled(call)
            for argument in all_given(node)
        )

    def _switched(
        self, runs: Iterable[_Ran], forward: Callable[[Where], bool]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the forwards that go by what something may set where Apex stays on, if it is, however it does so."""
        on = {
            where(function, call)
            for function, start in self.starts.items()
            for call, states in self.apex.calls(function, start)
            if states != OFF
        }
        project = self.new.project
        for at, call, function in runs:
            for enabled in self.native.asked(function, call) if at in on and forward(at) else ():
                asked = [] if asks_scaler(enabled) else read(project, function, enabled)
                places = (place for one in asked for place in setters(project, *one))
                if any(
                    self._is_set_later(project.function_of(*place), place[1]) for place in places
                ):
                    yield differs(SWITCHED, at, call)

    def _entered(
        self, runs: Iterable[_Ran], forward: Callable[[Where], bool]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the calls whose casts differ, of functions that are called with and without and leave them to the call."""
        ran = [
            (function, call)
            for at, call, function in runs
            if len(self.begun[function]) > 1 and forward(at) and not self._is_told(function)
        ]
        open_to = set(closure([f for f, c in ran if self._is_open(f, c)], self._openly))
        was: dict[Where, dict[ast.Call, States]] = {}
        for function, start in self.starts.items() if open_to else ():
            for call, states in self.apex.calls(function, start):
                was.setdefault(where(function, call), {})[call] = states
        now: dict[Where, list[tuple[ast.Call, Function]]] = {}
        for function in self.begun if open_to else ():
            for call in function.all_calls:
                if (callees := self.new.project.callees(call)) and open_to.issuperset(callees):
                    now.setdefault(where(function, call), []).append((call, function))
        for at, held in now.items():
            if not self.reported(at):
                yield from self._differing(at, was.get(at, {}), held)

    def _differing(
        self, at: Where, was: Mapping[ast.Call, States], now: Sequence[tuple[ast.Call, Function]]
    ) -> Iterator[tuple[Key, Difference]]:
        for call, function in now:
            ran = counterparts(was, [node for node, _ in now], call)
            wanted = frozenset(state for old in ran for state in was[old])
            inside = self.native.at(function, call, self.begun[function])
            if wanted == ON and inside is Casts.OFF:
                program = self.new.program
                if not told_above(program, self.native, self.begun, function, self._says):
                    yield differs(UNCAST, at, call)
            elif wanted == OFF and inside is Casts.ON:
                yield differs(CAST, at, call)

    def _says(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a rule of the run says of a call of both texts that it is not cast as before."""
        at = where(function, call)
        spelt = (n for old in self.old.functions.get(at[0], ()) for n in old.all_calls)
        return any(spelled(n) == at[1] for n in spelt) and self.reported(at)

    def _is_told(self, function: Function) -> bool:
        """Tell whether a rule of the run says of a forward of a function that it is not cast as before."""
        return any(
            claim.is_note
            and claim.code in LEFT_UNCAST
            and claim.path == function.module.path
            and any(old.spans(claim.line) for old in self.old.functions.get(key(function), ()))
            for claim in self.claims.every
        )

    def _is_open(self, function: Function, call: ast.Call) -> bool:
        """Tell whether no block of a function is around a call of it."""
        return self.native.here(function, call) is None

    def _openly(self, function: Function) -> Iterator[Function]:
        """Yield the functions that call one with no block around that, where no rule of the run says so."""
        for site in self.new.project.callers(function):
            if site.function in self.begun and self._is_open(site.function, site.call):
                if not self.reported(where(site.function, site.call)):
                    yield site.function

    def _is_set_later(self, function: Function, node: ast.AST) -> bool:
        """Tell whether something of the new text that sets a flag may run once Apex is on, and lasts; True is what Apex is."""
        statement = function.module.tree.statement(node)
        value = statement.value if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.Constant) and value.value is True:
            return False
        return any(
            states != OFF
            and point.kind in _SETS
            and isinstance(point.node, ast.expr)
            and ast.unparse(point.node) == ast.unparse(node)
            and stays(self.old.program, self.apex, old, point)
            for old in self.old.functions.get(key(function), ())
            if old in self.starts
            for point, states in self.apex.states(old, self.starts[old]).items()
        )

    def _on(self) -> Iterator[tuple[Function, ast.Call]]:
        for function, start in self.starts.items():
            calls = (c for c, states in self.apex.calls(function, start) if states == ON)
            for call in dict.fromkeys(calls):
                yield function, call

    def _casts(self, function: Function, call: ast.Call) -> bool:
        """Tell whether what a call of the old text is now runs with casts on, or may."""
        off = frozenset({Casts.OFF})
        return any(
            self.native.at(now, node, self.begun.get(now, off)) is not Casts.OFF
            for now in self.new.functions.get(key(function), ())
            for node in now.all_calls
            if spelled(node) == spelled(call)
        )
