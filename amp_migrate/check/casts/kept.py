"""Calls that native AMP of the old text cast by itself: they are cast still in runs that leave Apex off."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.related import Related
from amp_migrate.check.casts.callables import spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import (
    NARROWED,
    NATIVE,
    UNCAST,
    differs,
    place,
    same,
    scales,
    ways,
    where,
)
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.constants import is_false
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Function
from amp_migrate.training.beliefs import AUTOCASTS
from amp_migrate.training.contexts import around

_OFF = frozenset({Casts.OFF})


@dataclass(frozen=True, eq=False)
class Native:
    """What native AMP casts before and after; `texts` gives the calls of a function that run networks."""

    old: Side
    new: Side
    every: Sequence[Initialize]
    texts: Callable[[Key], set[str]]

    def lost(self, facts: Facts, entries: Iterable[Function]) -> Iterator[tuple[Key, Difference]]:
        """Yield the calls that runs from some functions cast before, and no more, under an assumption."""
        if not self._has_blocks:
            return
        entries = list(entries)
        before, after = Casting(self.old.program, facts), Casting(self.new.program, facts)
        was = before.spread(entries, inside_networks=True)
        now = after.spread(same(self.new, entries), inside_networks=True)
        for function, outside in was.items():
            calls = self.old.program.graph(function).calls
            may = {c for c in calls if _casts(before, function, outside, c)}
            had = self._named(self.old, function) if may else []
            cast = {c for c in had if c in may and before.enabled.runs(function, c)}
            for other in same(self.new, [function]) if cast else ():
                outer = now.get(other, frozenset())
                has = self._named(self.new, other)
                off = {call for call in has if after.at(other, call, outer) is Casts.OFF}
                for call in _lost(cast, had, off, has):
                    yield differs(NATIVE, where(other, call), call)

    def narrowed(self, claims: Claims) -> Iterator[tuple[Key, Difference]]:
        """Yield the blocks of the old text that something turned on which turns none on any more."""
        for name, functions in self.old.functions.items():
            now = [_ways(c) for f in self.new.functions.get(name, ()) for c in _blocks(self.new, f)]
            for function in functions if now else ():
                for call in _blocks(self.old, function):
                    had = _ways(call)
                    kept = any(ways is None or (had is not None and had <= ways) for ways in now)
                    if not kept and not claims.drops(function):
                        yield differs(NARROWED, where(function, call), call)

    def around(
        self, facts: Facts, entries: Iterable[Function]
    ) -> Callable[[Function, ast.Call], bool]:
        """Return what tells whether native AMP of the old text cast a call, in its function or around what runs that."""
        if not self._has_autocast:
            return lambda *_: False
        before = Casting(self.old.program, facts)
        was = before.spread(entries, inside_networks=True)

        def cast(function: Function, call: ast.Call) -> bool:
            return before.at(function, call, was.get(function, _OFF)) is Casts.ON

        return cast

    def islands(
        self, entries: Iterable[Function], claims: Claims
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the calls in blocks that keep native casts away, which Apex cast, and of which no rule of the run says so."""
        if not self._has_autocast:
            return
        before = Casting(self.old.program, Facts())
        for function in before.spread(entries, inside_networks=True):
            calls = self.old.program.graph(function).calls
            off = {c for c in calls if any(map(is_false, _asked(self.old, function, c)[:1]))}
            for call in self._named(self.old, function) if off else ():
                at = where(function, call)
                if call in off and not claims.uncast(place(at, call)):
                    yield differs(UNCAST, at, call)

    def asks_its_own(self, native: Casting, function: Function, call: ast.Call) -> bool:
        """Tell whether a block around a call of the new text asks for what decides nothing of Apex, as it did before."""
        olds = self.old.functions.get(key(function), ())
        if native.here(function, call) is not Casts.UNKNOWN or any(map(self._trains_itself, olds)):
            return False
        asked = _asked(self.new, function, call)[:1]
        return any(
            ast.unparse(node) == ast.unparse(was)
            for node in asked
            if self._is_other(native, function, node)
            for old in olds
            for other in old.calls
            if spelled(other) == spelled(call)
            for was in _asked(self.old, old, other)[:1]
        )

    def _is_other(self, native: Casting, function: Function, enabled: ast.expr) -> bool:
        """Tell whether what switches a block of the new text has nothing to do with what switched Apex, whoever calls it."""
        if isinstance(enabled, ast.Name):
            given = [got.node for got in self.new.project.received(function, enabled.id)]
            if given and all(isinstance(node, ast.Constant) for node in given):
                return False
        truth = partial(native.enabled.truth, function)
        return self._related.other(self.new.program, function, enabled, truth) is not None

    @cached_property
    def _has_autocast(self) -> bool:
        """Whether anything of the old text is autocast: otherwise nothing in it is cast for certain."""
        return any("autocast" in m.tree.text for m in self.old.project.modules.values())

    @cached_property
    def _has_blocks(self) -> bool:
        """Whether a context of the old text casts, or may."""
        return self._has_autocast or Casting(self.old.program, Facts()).may_enter()

    @cached_property
    def _related(self) -> Related:
        return Related(self.old.program, self.every)

    def _trains_itself(self, function: Function) -> bool:
        """Tell whether a function of the old text runs backward passes, and scales no loss by Apex: its blocks are those."""
        runs = any(tail(call) == "backward" for call in function.calls)
        return runs and not scales(self.old, function)

    def _named(self, side: Side, function: Function) -> list[ast.Call]:
        """Return the calls of a function that run networks, in the order of its text."""
        texts = self.texts(key(function))
        return [c for c in side.program.graph(function).calls if spelled(c) in texts]


def _casts(native: Casting, function: Function, around: frozenset[Casts], call: ast.Call) -> bool:
    """Tell whether a call is cast for certain, or a block around it asks whether to."""
    at = native.at(function, call, around)
    return at is Casts.ON or (at is Casts.UNKNOWN and native.here(function, call) is at)


def _blocks(side: Side, function: Function) -> list[ast.Call]:
    """Return the calls of a function that make blocks of autocast."""
    external = side.project.external
    return [c for c in function.calls if external(function.module, c.func) in AUTOCASTS]


def _asked(side: Side, function: Function, node: ast.AST) -> list[ast.expr]:
    """Return what the blocks of autocast around a node ask to be on, inner ones first."""
    module, external = function.module, side.project.external
    calls = [c for c in around(module, node) if isinstance(c, ast.Call)]
    enabled = (argument(c, "enabled") for c in calls if external(module, c.func) in AUTOCASTS)
    return [node for node in enabled if node is not None]


def _ways(call: ast.Call) -> set[str] | None:
    """Return what turns a block on, each by itself; None for one that is always on."""
    enabled = argument(call, "enabled")
    if enabled is None or (isinstance(enabled, ast.Constant) and enabled.value):
        return None
    return {ast.unparse(way) for way in ways(enabled)}


def _lost(
    cast: Collection[ast.Call],
    had: Iterable[ast.Call],
    off: Collection[ast.Call],
    has: Iterable[ast.Call],
) -> Iterator[ast.Call]:
    """Yield the calls that are not cast and whose counterparts were: the same in order, or in number where some went or came."""
    texts: dict[str, tuple[list[ast.Call], list[ast.Call]]] = {}
    for side, calls in enumerate((had, has)):
        for call in calls:
            texts.setdefault(spelled(call), ([], []))[side].append(call)
    for old, new in texts.values():
        if len(old) == len(new):
            yield from (b for a, b in zip(old, new, strict=True) if a in cast and b in off)
        elif sum(call not in off for call in new) < sum(call in cast for call in old):
            yield from (call for call in new if call in off)
