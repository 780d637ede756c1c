"""At which functions the programs begin that come to an initialize of Apex, or to a loss that it scales."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import initialized
from amp_migrate.check.casts.differing import scales
from amp_migrate.check.events.sides import Side
from amp_migrate.project import Function
from amp_migrate.project.reach import upwards


class Entries:
    """Finds the functions of the old text that begin programs; of `every` initialize, those that are `live` turn AMP on."""

    def __init__(self, old: Side, every: Sequence[Initialize], live: Sequence[Initialize]) -> None:
        self._old = old
        self._every = every
        self._live = live

    def alone(self, item: Initialize, facts: Facts, done: bool) -> list[Function]:
        """Return the programs that lead to an initialize and, where it leaves AMP off, to no other one that turns it on.

        Where it is `done`, they must not come to it again either.
        """
        entries = self.of(item)
        others = {other.call for other in self._live if done or other is not item}
        apex = initialized(self._old.program, others, facts) if others else None
        return [f for f in entries if apex is None or not apex.may_come([f])]

    def of(self, item: Initialize, through: Function | None = None) -> list[Function]:
        """Return the programs that lead to an initialize, or to a function, and the functions that code out of sight calls."""
        found = initialized(self._old.program, {item.call}).entries()
        leads = upwards(self._old.project, through) if through and through.node else found
        return [f for f in found if f in leads]

    def behind(self, known: Collection[Function]) -> list[Function]:
        """Return the functions that code out of sight calls while Apex is on, beside known ones: they scale losses by it."""
        return [f for f in self._scaling if f not in known]

    @cached_property
    def _scaling(self) -> list[Function]:
        """The functions that nothing calls, that initialize nothing and that may come to a loss which Apex scales."""
        project = self._old.project
        scaling = upwards(project, *(f for f in project.functions() if scales(self._old, f)))
        scaling -= upwards(project, *(item.function for item in self._every))
        return [f for f in scaling if f.node is not None and not project.callers(f)]
