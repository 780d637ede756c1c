"""Whether networks and their losses run with casts on exactly where Apex had them on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.disabling import States
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import OFF, ON, initialized
from amp_migrate.check.apex.steady import steady
from amp_migrate.check.casts.again import Again
from amp_migrate.check.casts.callables import Replaced, counterparts, spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.computing.others import Others
from amp_migrate.check.casts.computing.types import Run, Texts, computed
from amp_migrate.check.casts.conditions.apart import programs_apart
from amp_migrate.check.casts.conditions.beside import beside_apex
from amp_migrate.check.casts.conditions.blocks import new_blocks
from amp_migrate.check.casts.conditions.entries import Entries
from amp_migrate.check.casts.conditions.joined import does_nothing
from amp_migrate.check.casts.conditions.other_objects import left_out
from amp_migrate.check.casts.differing import (
    CAST,
    SWITCHED,
    TWICE,
    UNCAST,
    UNKNOWN,
    Where,
    differs,
    is_scaled,
    is_unknown,
    lambdas,
    place,
    run_by,
    same,
    scales,
    told_above,
    where,
)
from amp_migrate.check.casts.kept import Native
from amp_migrate.check.casts.lacking import Lacking
from amp_migrate.check.casts.losses import Losses
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.casts.scalers import DISABLED, ENABLED, Scalers
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.project import Function


@dataclass(frozen=True, eq=False)
class Forwards:
    """The calls of a project that run networks, before and after, by function and text."""

    old: Side
    new: Side
    every: tuple[Initialize, ...]
    networks: Networks
    claims: Claims

    def differences(self) -> Iterator[tuple[Key, Difference]]:
        """Yield the calls whose casts differ with AMP on, in runs that leave it off, and in programs without it."""
        graph = self.old.program.graph
        if not all(graph(i.function).at(i.call) for i in self.every):  # in a lambda
            return
        for item in self._live:
            if self._entries.stays(item, self.new):
                yield from self._added(TWICE, *beside_apex(self.new, self._entries, item))
            else:
                yield from self._with_amp(item)
        for item in self.every:
            for facts, alone, scaled in self._entries.off(item):
                yield from self._without(item, facts, scaled, alone)
            yield from self._scalers.alone(item, same(self.new, self._entries.of(item)), self.new)
            for way in item.missed if item.on is not None else ():
                facts = Facts((*way, (item.function, item.on or NOTHING)))
                entries, calls = self._entries.of(item, way[0][0]), {i.call for i in self._live}
                if not initialized(self.old.program, calls, facts).may_come(entries):
                    yield from self._without(item, facts, scaled=False, entries=entries)
        anew = [
            item for item in self._live if item.trains and not self._entries.stays(item, self.new)
        ]
        for item in anew:
            yield from self._scalers.outlasting(item, self._written, self.new)
        yield from self._scalers.going_on(anew, self._written)
        yield from self._elsewhere()
        yield from self._kept.narrowed(self.claims)
        yield from self._scalers.misread(self.new, self._written)
        yield from new_blocks(self._native, self._written, self.claims.dtype)

    @cached_property
    def _scalers(self) -> Scalers:
        return Scalers(self.old, self._native)

    @cached_property
    def _entries(self) -> Entries:
        return Entries(self.old, self.every, self._live)

    @cached_property
    def _kept(self) -> Native:
        return Native(self.old, self.new, self.every, self._texts)

    @cached_property
    def _others(self) -> Others:
        return Others(self.old, self.new, self.networks, self.every)

    @cached_property
    def _losses(self) -> Losses:
        return Losses(self.old, self.new, self.networks)

    @cached_property
    def _live(self) -> list[Initialize]:
        return [item for item in self.every if item.on is not None]

    def _added(
        self, what: str, native: Casting, begun: Mapping[Function, frozenset[Casts]]
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield what is cast in blocks that the old text did not have."""
        for at, call, _ in self._cast(begun, native):
            if not self._cast_before(at):
                yield differs(what, at, call)

    def _with_amp(self, item: Initialize) -> Iterator[tuple[Key, Difference]]:
        assert item.on is not None
        facts = Facts(((item.function, item.on), *item.callers))
        apex = initialized(self.old.program, {other.call for other in self._live}, facts)
        entries = self._entries.of(item)
        alone = apex.spread(entries)
        behind = self._entries.behind(alone)
        starts = apex.spread(entries, behind) if behind else alone
        native = Casting(self.new.program, facts)
        begins = [*entries, *behind]
        begun = native.spread(same(self.new, begins))
        was: dict[Where, dict[ast.Call, States]] = {}
        cast: set[ast.Call] = set()
        lasting = Casting(self.new.program, steady(self.old.program, apex, starts, facts), facts)
        lasts = lasting.spread(same(self.new, begins))
        plain = Casting(self.new.program, item.whichever_level())
        for function, start in starts.items():
            for call, states in apex.calls(function, start):
                was.setdefault(at := where(function, call), {})[call] = states
                if states == ON and call not in self._others.left(item, at):
                    cast.add(call)
        runs = [r for r in self._runs(begun) if not self._others.are_left(item, r[0])]
        replaced = Replaced(self.new.program)
        now: dict[Where, list[ast.Call]] = {}
        for at, call, _ in runs:
            now.setdefault(at, []).append(call)
        unknown = is_unknown(was, ((at, native.at(f, c, begun[f])) for at, c, f in runs))
        known = UNKNOWN if unknown else ON
        for at, call, function in runs:
            inside = native.at(function, call, begun[function])
            before = was.get(at, {})
            held, left = self._old(at[0]), self._others.left(item, at)
            ran = [o for o in counterparts(before, now[at], call) if o not in left]
            ran = [o for o in ran if not self.networks.prepares_in(held, o)]
            wanted = frozenset(state for old in ran for state in before[old])
            spared = wanted == OFF and not apex.spared.isdisjoint(self._old(at[0]))
            casting = (Casts.ON, Casts.UNKNOWN) if spared else (Casts.ON,)
            taken = wanted == known if unknown else None not in wanted and True in wanted
            lacking = taken and (
                inside is Casts.OFF or self._kept.asks_its_own(native, function, call)
            )
            if wanted == known and native.lacks(function, call, begun[function]):
                lacking |= self._is_forward(at)
            if lacking and not scales(self.new, function):
                reported = all(self.claims.uncast(place(at, old)) for old in ran)
                ways = self.new.program, native, begun, function
                reported = reported or told_above(*ways, self._is_told)
                reported = reported or replaced.runs(function, call.func, begun)
                if not reported and not native.within(
                    run_by(self.old, self.new, self._spelled(at), call)
                ):
                    yield differs(UNCAST, at, call)
            elif wanted == ON and inside is Casts.ON and self._is_forward(at):
                if lasting.at(function, call, lasts.get(function, frozenset())) is not Casts.ON:
                    if plain.at(function, call, begun[function]) is Casts.ON:
                        yield differs(SWITCHED, at, call)
            elif False in wanted and None not in wanted and inside in casting:
                yield differs(CAST, at, call)
        for at, call in left_out((self.old, self.new), item, apex, starts, runs, facts):
            if not self._is_reported(at):
                yield differs(UNCAST, at, call)
        written = native, begun, self._is_reported, self.claims, replaced
        more = Again(self.old, self.new, apex, starts, *written)
        yield from more.differences(runs, self._is_forward, self.networks.running)
        for callee, again in more.called(facts):
            for at, call, function in self._runs(same(self.new, [callee])):
                lacking = again.here(function, call) is Casts.OFF and self._is_forward(at)
                if lacking and not self._is_reported(at):
                    yield differs(UNCAST, at, call)
        for function, call in self._losses.uncast(cast, native, begun):
            if not scales(self.new, function):
                yield differs(UNCAST, where(function, call), call)
        yield from self._kept.islands(begins, self.claims)
        run = Run(apex, starts, native, begun, begins, item, self._others)
        yield from computed(Texts(self.old, self.new, self.networks), run, self.claims)
        if item.trains and is_scaled(self.old, item):
            yield from self._scalers.differing(native, begun, False, DISABLED)
            yield from self._scalers.off(item, native)
        if item.trains and (is_scaled(self.old, item) or isinstance(item.level, ast.Call)):
            yield from self._scalers.other(self.every, native, self.new)

    def _is_forward(self, at: Where) -> bool:
        """Tell whether a call of the old text runs a network by itself, to which casts always matter."""
        return any(at[1] in self.networks.forwards(f) for f in self._old(at[0]))

    def _without(
        self, item: Initialize, facts: Facts, scaled: bool, entries: list[Function]
    ) -> Iterator[tuple[Key, Difference]]:
        native = Casting(self.new.program, facts)
        reached = initialized(self.old.program, {item.call}).spread(entries)
        idle = does_nothing(self.old.project, item, facts.at(item.function))
        apex = initialized(self.old.program, () if idle else {item.call}, facts)
        begun = native.spread(
            same(self.new, [*entries, *self._entries.behind(reached)]),
            inside_networks=True,
            never=lambda f: any(map(apex.comes_first, self._old(key(f)))),
        )
        cast = self._kept.around(facts, entries)
        for at, call, function in self._cast(begun, native):
            had = self._cast_before(at) or any(cast(*place) for place in self._spelled(at))
            if native.enabled.runs(function, call) and not (had or self._is_reported(at)):
                yield differs(CAST, at, call)
        yield from self._kept.lost(facts, entries)
        if scaled:
            yield from self._scalers.differing(native, begun, True, ENABLED)

    def _elsewhere(self) -> Iterator[tuple[Key, Difference]]:
        """Yield what is cast now in programs that never had AMP."""
        apex = initialized(self.old.program, {item.call for item in self.every})
        project = self.old.project
        begin = [f for f in project.functions() if not apex.leads(f) and not project.callers(f)]
        lacking = Lacking(self.old, self.new)
        yield from lacking.flags(begin)
        yield from lacking.parameters()
        yield from lacking.wrappers()
        entries = same(self.new, programs_apart(self.old, apex, begin))
        begun = self._written.spread(entries, sure=True, inside_networks=True)
        yield from self._added(CAST, self._written, begun)
        yield from self._kept.lost(Facts(), begin)

    def _is_reported(self, at: Where) -> bool:
        """Tell whether a rule of the run says of each call of the old text that it is not cast as before."""
        return all(self.claims.uncast(place(at, c)) for _, c in self._spelled(at))

    def _is_told(self, function: Function, call: ast.Call) -> bool:
        return bool(self._spelled(at := where(function, call))) and self._is_reported(at)

    def _spelled(self, at: Where) -> list[tuple[Function, ast.Call]]:
        """Return the calls of the old text that read the same, with their functions."""
        return [(f, n) for f in self._old(at[0]) for n in f.all_calls if spelled(n) == at[1]]

    def _cast_before(self, at: Where) -> bool:
        """Tell whether native code of the old text had a block around a call."""
        return any(self._native.here(*place) is not None for place in self._spelled(at))

    @cached_property
    def _written(self) -> Casting:
        return Casting(self.new.program, Facts())

    @cached_property
    def _native(self) -> Casting:
        return Casting(self.old.program, Facts())

    def _old(self, name: Key) -> Sequence[Function]:
        return self.old.functions.get(name, ()) or self._lambdas.get(name, ())

    @cached_property
    def _lambdas(self) -> dict[Key, list[Function]]:
        return lambdas(self.old)

    def _runs(self, begun: Iterable[Function]) -> Iterator[tuple[Where, ast.Call, Function]]:
        """Yield the calls that run networks."""
        for function in begun:
            texts = self._texts(key(function))
            for call in self.new.program.graph(function).calls if texts else ():
                if spelled(call) in texts:
                    yield where(function, call), call, function

    def _cast(
        self, begun: Mapping[Function, frozenset[Casts]], native: Casting
    ) -> Iterator[tuple[Where, ast.Call, Function]]:
        """Yield the calls that run networks with casts, and all that stand in blocks which cast for certain."""
        for function, around in begun.items():
            calls = self.new.program.graph(function).calls
            cast = [c for c in calls if native.at(function, c, around) is Casts.ON]
            texts, held = self._texts(key(function)) if cast else set(), self._old(key(function))
            for call in cast:
                inside = bool(texts or held) and native.here(function, call) is Casts.ON
                if inside or spelled(call) in texts:
                    yield where(function, call), call, function

    def _texts(self, name: Key) -> set[str]:
        return {text for function in self._old(name) for text in self.networks.texts(function)}
