"""Compares the events of every function of a training before and after, path by path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amp_migrate.check.apex.assumed import Initialize, initializes
from amp_migrate.check.casts.computing.handed_out import narrowed
from amp_migrate.check.casts.computing.made_wide import made_wide
from amp_migrate.check.casts.conditions.answers import answered
from amp_migrate.check.casts.conditions.parts import unequal
from amp_migrate.check.casts.forwards import Forwards
from amp_migrate.check.casts.networks import Networks
from amp_migrate.check.events.beside import altered
from amp_migrate.check.events.builder import Builder
from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.fitting import unfit
from amp_migrate.check.events.handing import handed_over
from amp_migrate.check.events.presence import always_there
from amp_migrate.check.events.results import paired
from amp_migrate.check.events.sides import Key, Side, changed, side_of
from amp_migrate.check.events.traces import Automaton, Difference
from amp_migrate.check.gradients.clipped import clipped, taken_from_all
from amp_migrate.check.gradients.inside import read_inside, stepped_inside, written_inside
from amp_migrate.check.gradients.joint import apart, unskipped
from amp_migrate.check.gradients.left import divided
from amp_migrate.check.gradients.mixed import mixed_up
from amp_migrate.check.gradients.passed import passed
from amp_migrate.check.gradients.scaled import unscaled
from amp_migrate.check.gradients.stuck import stuck
from amp_migrate.check.inputs import rescaled
from amp_migrate.check.pairs import NOTHING, Pair, lost
from amp_migrate.check.plain import untold
from amp_migrate.check.settings.kinds import kinds
from amp_migrate.check.settings.off import turned_off
from amp_migrate.check.settings.scales import scales
from amp_migrate.check.statements.coming.declared import declared
from amp_migrate.check.statements.coming.entered import entered_unseen
from amp_migrate.check.statements.coming.foreign import foreign
from amp_migrate.check.statements.computed import computed
from amp_migrate.check.statements.enclosing import enclosed
from amp_migrate.check.statements.keys import reloaded
from amp_migrate.check.statements.reading import misread
from amp_migrate.check.statements.registered import idle
from amp_migrate.check.statements.saved import saved_apart
from amp_migrate.check.statements.surroundings import moved
from amp_migrate.project.once import kept
from amp_migrate.protocol.code.program import Program
from amp_migrate.report import Compared


@dataclass(frozen=True)
class Parted:
    """A function whose events differ."""

    key: Key
    difference: Difference


@dataclass(frozen=True)
class Comparison:
    """The functions whose events differ, but for what rules claim, and the events of all that change."""

    parted: list[Parted]
    compared: list[Compared]


def compare(before: Program, after: Program, claims: Claims) -> Comparison:
    """Compare the events of two texts of a project."""
    found: list[Parted] = []
    shown: list[Compared] = []
    old, new = side_of(before), side_of(after)
    every = [i for i in initializes(before.project) if not claims.drops(i.function)]
    networks = _networks(old, every)
    both = old.functions.keys() & new.functions.keys()
    known = (old.relevant | new.relevant) & both
    for name in changed(old, new):
        if name not in known:
            continue
        pair = Pair(old, new, name, known, networks)
        difference = pair.difference(NOTHING)
        if difference is not None and (allowed := claims.allowed(old.functions[name])):
            difference = pair.difference(allowed)
        if difference is not None:
            found.append(Parted(name, difference))
        if rows := pair.rows():
            shown.append(Compared(*name, tuple(rows)))
    for name in sorted(old.relevant - new.functions.keys()):
        if (found_gone := _gone(old, name, networks)) is not None:
            found.append(Parted(name, found_gone))
    forwards = Forwards(old, new, tuple(every), networks, claims)
    others = (
        *scales(old, new, every, claims),
        *kinds(old, new, every),
        *handed_over(new, claims),
        *unscaled(old, new, claims),
        *stepped_inside(old, new, claims),
        *read_inside(old, new, claims),
        *written_inside(old, new, claims),
        *rescaled(old, new, every),
        *untold(old, new, every, claims),
        *apart(old, new, claims),
        *unskipped(old, new),
        *altered(old, new, claims),
        *unfit(old, new),
        *always_there(old, new),
        *paired(old, new, every),
        *moved(old, new, claims),
        *misread(old, new, claims),
        *reloaded(old, new, claims),
        *mixed_up(old, new),
        *clipped(old, new),
        *stuck(old, new),
        *taken_from_all(old, new),
        *passed(old, new, claims),
        *divided(old, new, every, claims),
        *idle(old, new, every, claims),
        *computed(old, new, every, claims),
        *enclosed(old, new, claims),
        *declared(old, new, claims),
        *entered_unseen(old, new, claims),
        *foreign(old, new, claims),
        *made_wide(old, new, claims, networks),
        *narrowed(old, new, claims, networks),
        *saved_apart(old, new, every),
        *turned_off(old, new),
        *answered(old, new, every, claims),
        *unequal(old, new, every),
    )
    for name, difference in (*forwards.differences(), *others):
        found.append(Parted(name, difference))
    return Comparison(found, shown)


def _networks(side: Side, every: Sequence[Initialize]) -> Networks:
    """Return the networks of the old text, read once for the same initializes."""
    asked = Networks, side.program, *(item.call for item in every)
    return kept(side.project, asked, lambda: Networks(side.program, side.labels, every))


def _gone(old: Side, name: Key, networks: Networks) -> Difference | None:
    """Return an event of a function that goes and that nothing in sight calls, where a way without Apex comes to it."""
    if any(old.project.callers(function) for function in old.functions[name]):
        return None
    forwards = {t for f in old.functions[name] for t in networks.texts(f)}
    build = Builder(old, {}, set(), forwards, frozenset(), without_apex=True, ending=True)
    return lost(build.build(name), Automaton())
