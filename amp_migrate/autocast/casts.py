"""The `enabled=` of an autocast: the condition under which Apex was on, as a function can see it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace

from amp_migrate.autocast.beside import runs_instead
from amp_migrate.autocast.evaluated.already import already_on, asked_early, joined
from amp_migrate.autocast.evaluated.begun import Begun, Guard
from amp_migrate.facts.closure import closure
from amp_migrate.flow.condition import (
    UNKNOWN,
    Condition,
    as_bool,
    conjunction,
    conjuncts,
    either,
    is_plain,
)
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.asked import Asked
from amp_migrate.placement.making.at_hand import at_hand, without_cost
from amp_migrate.placement.making.creation import Creation
from amp_migrate.placement.making.later import Later
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project import Function
from amp_migrate.project.imported import coming
from amp_migrate.project.programs import run_from
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import family
from amp_migrate.project.rounds import may_follow


@dataclass(frozen=True, slots=True)
class Told:
    """What `enabled=` says, and whether it asks a GradScaler; empty text where casts are always on."""

    text: str
    by_scaler: bool = False


class Casts:
    """Answers what `enabled=` must say in each function of a unit."""

    def __init__(self, unit: Unit, creations: list[Creation]) -> None:
        self._unit = unit
        self.creations = creations
        self._reach: dict[Function, set[Function]] = {}
        self._asked = Asked(unit, creations)
        self._begun = Begun(unit)
        self.condition = self._condition(creations)

    @staticmethod
    def _condition(creations: list[Creation]) -> Condition:
        """Return the common condition of all initializes; one that nobody can repeat where they differ."""
        found = {(c.casts.value, c.casts.text) for c in creations}
        needed = _needed(creations)
        if len(found) == 1 and not any(c.sometimes or c.instead for c in needed):
            return creations[0].casts
        return UNKNOWN

    @property
    def never(self) -> bool:
        """Whether Apex was never on (O0), so that nothing is cast."""
        return bool(self.creations) and all(c.casts.value is False for c in self.creations)

    def enabled(self, function: Function, node: ast.AST, *, training: bool) -> str | None:
        """Return the text of `enabled=` at `node`; empty where casts are always on.

        Returns None for an evaluation that can see neither flag nor scaler; raises `Cannot` for a training.
        """
        told = self.told(function, node, training=training)
        return None if told is None else told.text

    def told(self, function: Function, node: ast.AST, *, training: bool) -> Told | None:
        """Return `enabled=` at a node and what it asks, as `enabled` does."""
        told = self._told(function, node, training=training)
        if told is None or told.text == "False" or told.by_scaler:
            return told
        text = told.text
        if text and not training:
            text = self._with_others(function, text)
        ways = self._missed(function, node) if training else self._each(function, node)
        asked = [self._begun.condition(g, function) for g in self._begun.common(ways)]
        if any(ways) and (None in asked or not asked):
            by_scaler = self._scaling(self._of(function)) and self._by_scaler(
                function, node, training
            )
            if training or by_scaler:
                return by_scaler or self._give_up(function, node, training)
        stated = conjuncts(Condition(None, text)) if text else ()
        parts = [c for c in asked if c is not None and c.text not in stated]
        whole = conjunction([*parts, *(Condition(None, part) for part in stated)])
        return Told(as_bool(whole, self._unit.not_bools).text if parts and whole.text else text)

    def _with_others(self, function: Function, text: str) -> str:
        """Return the condition of an initialize of a function together with that of one which may have run before."""
        others = [c for c in self.creations if c.site.function is not function]
        if len(others) == len(self.creations):
            return text
        already = already_on(self._unit.project, function, others, self._asked.told)
        whole = joined(text, already) if already is not None else None
        return as_bool(whole, self._unit.not_bools).text if whole is not None else text

    def untold(self, function: Function, node: ast.AST) -> list[Guard]:
        """Return the guards of an initialize that an evaluation does not pass, and that its function cannot ask.

        A GradScaler that is made there is off, or a disabled one, in runs that do not come to it.
        """
        asked = self.told(function, node, training=False)
        begun = any(self._begun.before(c, function, node) for c in self.creations)
        if begun or (asked is not None and asked.by_scaler):
            return []
        every = self._each(function, node)
        known = self._begun.common(every)
        unlike = [] if known else [guard for guards in every for guard in guards]
        return unlike or [g for g in known if self._begun.condition(g, function) is None]

    def _each(self, function: Function, node: ast.AST) -> list[list[Guard]]:
        """Return the guards on each way to an initialize that a node may do without."""
        return [way for c in self._of(function) for way in self._begun.guards(c, function, node)]

    def _missed(self, function: Function, node: ast.AST) -> list[list[Guard]]:
        """Return the guards around the calls that lead to each initialize, past which some run comes to a node."""
        return [way for c in self._of(function) for way in self._begun.missed(c, function, node)]

    def _told(self, function: Function, node: ast.AST, *, training: bool) -> Told | None:
        if self._unit.home.makers or function in self._unit.home.beside.borrowing:
            return self._by_scaler(function, node, training)
        creations = self._of(function)
        if not training:
            creations = self._nearest(creations, function, node)
            creations = [self._initialized(c) for c in creations]
        condition = self._condition(creations)
        if not training and condition == UNKNOWN and not self._all_scale(creations):
            condition = either([c.casts for c in creations])
            making = [c for c in creations if self._all_scale([c])]
            if condition.text and condition == self._condition(making):
                creations = making  # the others are on where these are, at most
            elif condition.value is None:
                return self._seen(condition.text, function, creations, training)
        if condition.value is True and self._without_amp(function, creations if training else []):
            condition = UNKNOWN
        if condition.value is not None:
            return Told("" if condition.value else "False")
        text = condition.text
        seen = self._seen(text, function, creations, training)
        respelt = None if seen or training else self._respelt(text, function, creations)
        if (seen or respelt) and is_plain(text):
            return seen or respelt
        scaling = self._scaling(creations)
        if seen and not training and not (scaling and function in self._unit.home.users):
            held = scaling and without_cost(self._unit.home, function, node, self.creations)
            return Told(f"{held}.is_enabled()", by_scaler=True) if held else seen
        if not scaling or not (self._unit.home.inits or self._unit.home.callers.alone):
            return seen or respelt or self._give_up(function, node, training)
        return self._by_scaler(function, node, training) or seen or respelt

    def _seen(
        self, text: str, function: Function, creations: list[Creation], training: bool
    ) -> Told | None:
        """Return a condition where a function sees all that it reads, as initializes found it."""
        known = text and self._asked.told(text, function, creations, training)
        return Told(text) if known else None

    def _respelt(self, text: str, function: Function, creations: list[Creation]) -> Told | None:
        """Return a condition as an evaluation can ask it by other names, where it has no GradScaler to ask."""
        if function in self._unit.home.users or self._unit.home.is_attribute(function):
            return None
        other = self._asked.respelt(text, function, creations) if text else None
        return Told(other) if other else None

    def _scaling(self, creations: list[Creation]) -> bool:
        """Tell whether the GradScaler of each of some initializes is on where casts are."""
        return all(self._unit.options[c.site].scaling and c.scales == c.casts for c in creations)

    def _initialized(self, creation: Creation) -> Creation:
        """Return an initialize with all that must hold for it to run, where its function may return before it."""
        if not creation.around:
            return creation
        casts = conjunction([*creation.around, creation.casts])
        return replace(creation, casts=as_bool(casts, self._unit.not_bools))

    def _without_amp(self, function: Function, creations: list[Creation]) -> bool:
        """Tell whether a program that hands in a GradScaler that is off, or a call that runs no initialize, can run a function."""
        project, lending = self._unit.project, self._unit.home.beside.lending
        handed = any(function in reachable(project, start) for start in lending)
        return handed or runs_instead(project, function, {c.site.function for c in creations})

    def _by_scaler(self, function: Function, node: ast.AST, training: bool) -> Told | None:
        """Return what the scaler says that is made where amp was chosen."""
        home, made = self._unit.home, self.creations
        if not training:
            scaler = at_hand(home, function, node, made) or without_cost(home, function, node, made)
        else:
            scaler = home.access(function, node)
            asked_early(self._unit.project, made, function, node, scaler)
        return Told(f"{scaler}.is_enabled()", by_scaler=True) if scaler is not None else None

    def _all_scale(self, creations: list[Creation]) -> bool:
        """Tell whether each of some initializes makes the GradScaler."""
        inits = self._unit.home.inits
        return all(c.instead or c.site in inits.get(c.site.function, []) for c in creations)

    def runs(self, function: Function) -> bool:
        """Tell whether a program that initializes a model of the unit can run a function."""
        return any(function in self._reached(creation) for creation in self.creations)

    def _nearest(
        self, creations: list[Creation], function: Function, node: ast.AST
    ) -> list[Creation]:
        """Return the initializes of models alone that share the most guards with a node, less those guards."""
        making = self._unit.home.inits.get(function, [])
        own = [c for c in creations if c.site.function is function and c.site not in making]
        project = self._unit.project
        before = [c for c in own if may_follow(project, function, c.site.node, node)]
        if len(own) < len(creations) or not before:
            return creations
        near = {c: len(c.within) - len(c.apart(node)) for c in before}
        best = [c for c in before if near[c] == max(near.values())]
        bools = self._unit.not_bools
        return [replace(c, casts=as_bool(c.casts_at(node, self._stated(c)), bools)) for c in best]

    def _stated(self, creation: Creation) -> Condition:
        """Return what an initialize itself states."""
        return self._unit.options[creation.site].casts

    def set_before(self, function: Function, node: ast.AST) -> int | None:
        """Return the line that may set a part of the condition once AMP is on, and before a node; None if nothing does."""
        project = self._unit.project
        for setting in self._asked.settings(self._of(function), self.condition.text):
            holder = project.holder(setting)
            if Later(project, (holder, setting)).reaches(function, node):
                return setting.lineno
        return None

    def repeatable(self, functions: Iterable[Function]) -> bool:
        """Tell whether all functions can see what the condition reads."""
        text = self.condition.text
        return bool(text) and all(self._asked.told(text, f, self._of(f), True) for f in functions)

    def _give_up(self, function: Function, node: ast.AST, training: bool) -> Told | None:
        if not training:
            return None
        text = self.condition.text
        who = spoken(function)
        message = f"{who} cannot tell whether AMP is on, as it does not know `{text}`"
        advice = f"pass `{text}` to {who}, then run again"
        later = self._asked.set_later(self._of(function), text)
        if later is not None:
            message = f"{who} cannot tell whether AMP is on, as `{text}` may be set after amp.initialize (line {later})"
            advice = "keep what it was at amp.initialize in a variable of its own, ask that one, then run again"
        if not text:
            message = f"the programs that run {who} turn AMP on under different conditions"
            advice = f"pass the flag that turns AMP on to {who}, then run again"
        raise Cannot("AMP901", *function.at(node), message, advice)

    def _of(self, function: Function) -> list[Creation]:
        """Return the initializes whose program can run a function; all where that is not known."""
        own = [c for c in self.creations if c.site.function is function]
        if own:
            return own
        return [c for c in self.creations if function in self._reached(c)] or self.creations

    def _reached(self, creation: Creation) -> set[Function]:
        origin = creation.site.function
        known = self._reach.get(origin)
        if known is None:
            project = self._unit.project
            starts = set(coming(project, [(origin, creation.site.node)]).functions)
            files = run_from(project, [f for f in starts if not project.callers(f)] or starts)
            starts |= {f for start in starts for f in _called_unseen(self._unit, start)}
            ran = closure(starts, self._run)
            known = self._reach[origin] = {f for f in ran if f.module.path in files}
        return known

    def _run(self, function: Function) -> set[Function]:
        """Return what a function runs, and the methods that code out of sight may call on objects that it makes."""
        project = self._unit.project
        made = {cls for node in function.calls for cls in project.constructed(node)}
        unseen = {m for cls in made for m in cls.methods.values() if not project.callers(m)}
        return unseen | reachable(project, function)


def _called_unseen(unit: Unit, function: Function) -> list[Function]:
    """Return what code out of sight may call: methods of the object whose method a function is, functions of a file that ran."""
    found = [m for c in family(function.cls) for m in c.methods.values()] if function.cls else []
    if function.node is None:
        found = [f for f in function.module.functions.values() if f.cls is None and f.node]
    return [f for f in found if not unit.project.callers(f)]


def _needed(creations: list[Creation]) -> list[Creation]:
    """Leave out the initializes of a class that only repeat what its constructor always does."""
    always = {c.site.function.cls for c in creations if c.in_constructor}
    return [c for c in creations if c.site.function.cls not in always or c.in_constructor]
