"""Networks that `amp.initialize` was not given: O2 and O3 left them in fp32, whatever the new text casts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.flags.levels import is_of_given, of_given
from amp_migrate.check.apex.initialized import initialized
from amp_migrate.check.apex.multiplying import Multiplying
from amp_migrate.check.casts.callables import counterparts, spelled
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.casts.differing import (
    CAST,
    UNCAST,
    Where,
    differs,
    place,
    same,
    scales,
    where,
)
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.claims import IN_FP32, Claims
from amp_migrate.check.events.sides import Key, Side
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import all_given, argument
from amp_migrate.project import Function
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.initialized.followed import are_followed
from amp_migrate.training.initialized.ungiven import Ungiven
from amp_migrate.training.region import run_by
from amp_migrate.values.objects import Instance, Made


@dataclass(frozen=True, eq=False)
class Others:
    """Compares both texts, each forward by its function and text, of programs that `every` initialize begins."""

    old: Side
    new: Side
    networks: Networks
    every: Sequence[Initialize]

    def are_left(self, item: Initialize, at: Where) -> bool:
        """Tell whether Apex left in fp32 what runs a network, or computes with what one gave, whenever an initialize had run."""
        held = self._runs(at) if is_of_given(self.old.project, item) else {}
        return bool(held) and all(held.values())

    def left(self, item: Initialize, at: Where) -> frozenset[ast.Call]:
        """Return those of the calls of the old text that are spelt in one way."""
        held = self._runs(at) if is_of_given(self.old.project, item) else {}
        return frozenset(call for (_, call), other in held.items() if other)

    def leaves(self, item: Initialize, function: Function, given: Sequence[ast.expr]) -> bool:
        """Tell whether such networks alone gave what is computed with, whenever an initialize had run."""
        return (
            is_of_given(self.old.project, item)
            and self._followed
            and self._comes_of_others(function, given)
        )

    def differing(
        self,
        item: Initialize,
        begins: Sequence[Function],
        at_one: Callable[[Function, ast.Call], Casts],
        claims: Claims,
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the forwards that the new text casts at such a level, and those of networks that are given which it casts at O1 alone.

        No rule of the run says so of them. `begins` are the functions of the old text that turn AMP on, and those which begin
        behind them; `at_one` tells what the new text casts at O1.
        """
        known = of_given(self.old.project, item)
        if known is None:
            return
        native = Casting(self.new.program, Facts(((item.function, known), *item.callers)))
        begun = native.spread(same(self.new, begins))
        before = Casting(self.old.program, Facts())
        for function in begun:
            for call in self.new.program.graph(function).calls:
                casts, at = native.at(function, call, begun[function]), where(function, call)
                if casts is Casts.OFF and at_one(function, call) is Casts.ON:
                    lacking = self._are_given(at) and not scales(self.new, function)
                    if lacking and not self._around(native, casts, claims).runs(function, call):
                        yield differs(UNCAST, at, call)
                held = self._runs(at) if casts is Casts.ON else {}
                if not held:
                    continue
                ran = counterparts([made for _, made in held], self._alike(function, at), call)
                left = [each for each in held if each[1] in ran]
                if not all(held[each] for each in left):
                    if not self._around(native, casts, claims).runs_some(function, call):
                        continue
                noted = all(self._is_noted(claims, at, *each) for each in left)
                own = any(before.here(*each) for each in left) or scales(self.new, function)
                if not noted and not own:
                    yield differs(CAST, at, call)

    def _alike(self, function: Function, at: Where) -> list[ast.Call]:
        """Return the calls of a function of the new text that are spelt in one way."""
        return [c for c in self.new.program.graph(function).calls if spelled(c) == at[1]]

    def _are_given(self, at: Where) -> bool:
        """Tell whether all forwards that are spelt in one way are of networks that are initialized."""
        held = [
            (function, call)
            for function, call in self._spelled(at)
            if at[1] in self.networks.forwards(function)
        ]
        return bool(held) and all(
            self._ungiven.is_given(function, self._run(function, call)) for function, call in held
        )

    def _spelled(self, at: Where) -> Iterator[tuple[Function, ast.Call]]:
        """Yield the calls of the old text that are spelt in one way."""
        for function in self.old.functions.get(at[0], ()):
            for call in self.old.program.graph(function).calls:
                if spelled(call) == at[1]:
                    yield function, call

    def _around(self, native: Casting, casts: Casts, claims: Claims) -> _Around:
        return _Around(self, native, casts, claims)

    def alone(self, new: Function, made: ast.Call, claims: Claims) -> bool:
        """Tell whether what a call of the new text was in the old one runs such networks alone, and no rule says so."""
        at = where(new, made)
        every = list(self._spelled(at))
        alike, calls = self._alike(new, at), [call for _, call in every]
        ran = counterparts(calls, alike, made) if made in alike else calls
        held = [each for each in every if each[1] in ran]
        return bool(held) and all(
            self._ungiven.is_other(function, self._run(function, call))
            and self._is_given_others(function, call)
            and not self._takes_of_given(function, call)
            and not self._is_noted(claims, at, function, call)
            for function, call in held
        )

    def _is_given_others(self, function: Function, call: ast.Call) -> bool:
        """Tell whether no network that may be initialized is handed to code which is of no network itself, as that runs it."""
        if any(map(is_of_network, self.old.project.callees(call))):
            return True
        given = (g for g in all_given(call) if self._ungiven.may_hold(function.module, g))
        return all(self._ungiven.is_other(function, each) for each in given)

    def _takes_of_given(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call computes with what a network gave that Apex may have been given, as a criterion does."""
        return any(
            not self._ungiven.is_other(held, self._run(held, made))
            for held, made in self._behind(function, all_given(call))
        )

    def _is_noted(self, claims: Claims, at: Where, function: Function, call: ast.Call) -> bool:
        """Tell whether a rule of the run says so of a forward, or of what it runs."""
        if claims.note(IN_FP32, place(at, call)):
            return True
        notes = [c for c in claims.every if c.is_note and c.code == IN_FP32]
        below = run_by(self.old.project, [(function.module, call)]) if notes else set()
        return any(f.module.path == c.path and f.spans(c.line) for c in notes for f in below)

    def _runs(self, at: Where) -> dict[tuple[Function, ast.Call], bool]:
        """Return the calls of the old text that are spelt in one way and run networks, each with whether Apex left that one."""
        if not self._followed:
            return {}
        if at not in self._known:
            self._known[at] = {
                (function, call): self._is_other(function, call)
                for function, call in self._spelled(at)
                if at[1] in self.networks.texts(function) or self._is_forward(function, call)
            }
        return self._known[at]

    @cached_property
    def _followed(self) -> bool:
        """Whether it is seen which networks the initializes are given."""
        given = [argument(item.call, "models", 0) for item in self.every]
        parts = (g.elts if isinstance(g, ast.List | ast.Tuple) else [g] for g in given if g)
        return all(given) and are_followed(part for each in parts for part in each)

    @cached_property
    def _known(self) -> dict[Where, dict[tuple[Function, ast.Call], bool]]:
        return {}

    def _is_other(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a call runs such a network, or computes with what such ones gave."""
        if self._is_forward(function, call):
            return self._ungiven.is_other(function, self._run(function, call))
        func = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        return self._comes_of_others(function, [*func, *all_given(call)])

    def _comes_of_others(self, function: Function, given: Sequence[ast.expr]) -> bool:
        behind = list(self._behind(function, given))
        return bool(behind) and all(
            self._ungiven.is_other(held, self._run(held, made)) for held, made in behind
        )

    def _behind(
        self, function: Function, given: Sequence[ast.expr]
    ) -> Iterator[tuple[Function, ast.Call]]:
        """Yield the forwards that gave what some expressions are computed of."""
        project, losses = self.old.project, self.old.program.training.losses
        for each in given:
            for made in losses.calls(function, each, cast=True):
                if self._is_forward(held := project.holder(made), made):
                    yield held, made

    def _is_forward(self, function: Function, call: ast.Call) -> bool:
        if spelled(call) in self.networks.forwards(function):
            return True
        return self._of_any.is_network(function.module, call)

    @cached_property
    def _of_any(self) -> Multiplying:
        """Tells networks by their classes, whatever the levels."""
        return Multiplying(self.old.program, ())

    def _run(self, function: Function, call: ast.Call) -> ast.expr:
        """Return the network that a call runs, by itself or by a method."""
        func = call.func
        facts = self.old.project.values.facts(function.module, func)
        known = any(isinstance(fact, Instance | Made) for fact in facts)
        return func.value if isinstance(func, ast.Attribute) and not known else func

    @cached_property
    def _ungiven(self) -> Ungiven:
        reaching = self.old.program.training.losses.reached
        return Ungiven(self.old.project, reaching, self.networks.running, self._begins)

    def _begins(self, function: Function) -> list[ast.Call]:
        """Return the calls of a function that initialize, or may come to that."""
        apex = initialized(self.old.program, {item.call for item in self.every})
        return [call for call in function.calls if apex.initializes(call)]


@dataclass(frozen=True, eq=False)
class _Around:
    """Asks of the blocks around what calls a function, by which a forward in it is cast, or is not, whom they run."""

    others: Others
    native: Casting
    casts: Casts
    claims: Claims

    def runs(
        self, function: Function, call: ast.Call, seen: frozenset[Function] = frozenset()
    ) -> bool:
        """Tell whether all of them run networks that Apex was not given, alone."""
        if self.native.here(function, call) is not None or function in seen:
            return False
        sites = self.others.new.project.callers(function)
        return bool(sites) and all(
            self._runs(site.function, site.call, seen | {function}) for site in sites
        )

    def runs_some(
        self, function: Function, call: ast.Call, seen: frozenset[Function] = frozenset()
    ) -> bool:
        """Tell whether one of them, or several, runs such networks alone."""
        if self.native.here(function, call) is not None or function in seen:
            return False
        for site in self.others.new.project.callers(function):
            inside = self.native.here(site.function, site.call)
            if inside in (self.casts, Casts.UNKNOWN):
                if self.others.alone(site.function, site.call, self.claims):
                    return True
            elif inside is None and self.runs_some(site.function, site.call, seen | {function}):
                return True
        return False

    def _runs(self, function: Function, call: ast.Call, seen: frozenset[Function]) -> bool:
        inside = self.native.here(function, call)
        if inside is None:
            return self.runs(function, call, seen)
        if inside not in (self.casts, Casts.UNKNOWN):
            return True
        return self.others.alone(function, call, self.claims)
