"""At which functions the programs begin that come to an initialize of Apex, or to a loss that it scales."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from amp_migrate.check.apex.assumed import Initialize, initializes
from amp_migrate.check.apex.facts import Facts
from amp_migrate.check.apex.initialized import initialized
from amp_migrate.check.casts.casting import Casting
from amp_migrate.check.casts.conditions.joined import apart, does_nothing, joined
from amp_migrate.check.casts.conditions.objects_of import may_come_to
from amp_migrate.check.casts.differing import scales
from amp_migrate.check.events.sides import Side, key
from amp_migrate.flow.assumption import Assumption
from amp_migrate.project import Function
from amp_migrate.project.reach import upwards
from amp_migrate.training.contexts import scaling_calls


class Entries:
    """Finds the functions of the old text that begin programs; of `every` initialize, those that are `live` turn AMP on."""

    def __init__(self, old: Side, every: Sequence[Initialize], live: Sequence[Initialize]) -> None:
        self._old = old
        self._every = every
        self._live = live

    def off(self, item: Initialize) -> Iterator[tuple[Facts, list[Function], bool]]:
        """Yield what holds in each run with AMP off, with the programs that come to one, and whether no loss has a scale then."""
        for known in (*item.off, *joined(self._old.program, item)):
            facts = item.without(known)
            if alone := self._alone(item, facts, known in item.done):
                yield facts, alone, known not in item.scaled
        for known in apart(self._old.program, item):
            facts = item.without(known)
            if alone := self._going_on(item, known, facts):
                yield facts, alone, not item.scaled

    def _alone(self, item: Initialize, facts: Facts, done: bool) -> list[Function]:
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

    def stays(self, item: Initialize, new: Side) -> bool:
        """Tell whether the new text still initializes Apex where the old one did, which casts as it did."""
        name = key(item.function)
        left = sum(key(i.function) == name for i in initializes(new.project))
        return 0 < left == sum(key(i.function) == name for i in self._every)

    def staying(self, item: Initialize, new: Side) -> list[Function]:
        """Return the programs that lead to an initialize which stays, and to none that goes."""
        going = {i.call for i in self._every if not self.stays(i, new)}
        leads = initialized(self._old.program, going).leads
        return [f for f in self.of(item) if not leads(f)]

    def behind(self, known: Collection[Function]) -> list[Function]:
        """Return the functions that code out of sight calls while Apex is on, beside known ones: they scale losses by it."""
        return [f for f in self._scaling if f not in known]

    @cached_property
    def _scaling(self) -> list[Function]:
        """The functions that nothing calls, that initialize nothing and that may come to a loss which Apex scales."""
        project = self._old.project
        known = {f for f in project.functions() if scales(self._old, f)}
        found = upwards(project, *known) - upwards(project, *(i.function for i in self._every))
        begin = [f for f in found if f.node is not None and not project.callers(f)]
        return [f for f in begin if may_come_to(project, f, known)]

    def _going_on(self, item: Initialize, known: Assumption, facts: Facts) -> list[Function]:
        """Return the programs that go on where an initialize is left out: none that scales a loss by Apex then, which raises."""
        entries = self._alone(item, facts, False)
        if does_nothing(self._old.project, item, known):
            return entries
        return [
            entry
            for entry in entries
            if not self._scales_in(entry, Casting(self._old.program, facts))
        ]

    def _scales_in(self, entry: Function, run: Casting) -> bool:
        """Tell whether a program may come to a loss that Apex scales, in a run of which something is known."""
        return any(
            scales(self._old, function)
            and any(
                call in scaling_calls(self._old.project) and run.enabled.may_run(function, call)
                for call in self._old.program.graph(function).calls
            )
            for function in run.spread([entry], inside_networks=True)
        )
