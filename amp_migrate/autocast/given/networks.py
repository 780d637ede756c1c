"""Which regions run networks that Apex was not given, alone or for some of the calls that lead there."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from amp_migrate.apex.levels import OF_GIVEN
from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.evaluated.inference import begins
from amp_migrate.facts.paths import all_given, walk
from amp_migrate.placement.finding.networks import initialized
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Module
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.classes import is_network_class
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.forwards.holders import holders
from amp_migrate.training.initialized.followed import are_followed
from amp_migrate.training.initialized.ungiven import Origin, Ungiven
from amp_migrate.training.region import Region, calls_in, run_in


class Run(NamedTuple):
    """The networks that a region runs: those that Apex may have been given, and those that it surely was not."""

    own: tuple[Origin, ...] = ()
    others: tuple[Origin, ...] = ()


class Networks:
    """Answers for the regions of a unit; what a level of O0 and O1 casts is the same for all networks."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._known: dict[tuple[ast.stmt, ast.stmt], Run] = {}
        options = (unit.options[site] for site in unit.of(Kind.INITIALIZE))
        differ = any(each.levels & OF_GIVEN for each in options)
        self._differ = differ and are_followed(node for _, node in unit.models())

    def run(self, region: Region) -> Run:
        """Return the networks that a region runs; none where they are all cast alike."""
        if not self._differ:
            return Run()
        place = region.first, region.last
        if place not in self._known:
            self._known[place] = self._found(region)
        return self._known[place]

    def only_others(self, region: Region) -> bool:
        """Tell whether a region runs networks, and surely none that Apex was given."""
        run = self.run(region)
        return bool(run.others) and not run.own

    def _found(self, region: Region) -> Run:
        found: dict[Origin, None] = {}
        direct = self._forwards(calls_in([region])) or self._leading(region)
        for module, call in direct or self._behind(region):
            function = self._unit.project.function_of(module, call)
            held = self._held(module, call)
            origins = [o for node in held for o in self._ungiven.origins(function, node)]
            if len(held) != 1:  # one of them may be run, or what it holds
                other = bool(origins) and all(origin.other for origin in origins)
                origins = [Origin(function, call, other)]
            found |= dict.fromkeys(origins)
        own = tuple(origin for origin in found if not origin.other)
        others = tuple(origin for origin in found if origin.other)
        return Run(own, others if direct or not own else ())

    def _forwards(self, calls: Iterable[tuple[Module, ast.Call]]) -> list[tuple[Module, ast.Call]]:
        runs = self._unit.forwards.call
        return [(module, call) for module, call in calls if runs(module, call) is Forward.NETWORK]

    def _leading(self, region: Region) -> list[tuple[Module, ast.Call]]:
        """Return the calls that are handed networks, in a region that comes to forwards by generators or functions in others."""
        project = self._unit.project
        below = run_in(project, [region])
        if not any(self._forwards((f.module, call) for call in f.all_calls) for f in below):
            return []
        calls = calls_in([region])
        return [(m, c) for m, c in calls if project.callees(c) and self._held(m, c)]

    def _behind(self, region: Region) -> list[tuple[Module, ast.Call]]:
        """Return the forwards whose outputs a region computes with that runs none itself."""
        read = [n for stmt in region.statements() for n in walk(stmt) if isinstance(n, ast.Name)]
        made = (self._unit.losses.calls(region.function, name, cast=True) for name in read)
        module_of = self._unit.project.module_of
        return self._forwards((module_of(c), c) for calls in made for c in calls)

    def _held(self, module: Module, call: ast.Call) -> list[ast.expr]:
        """Return what a forward runs, or what it is called on and given that may hold that."""
        func, is_network = call.func, self._unit.forwards.is_network
        if is_network(module, func):
            return [func]
        if isinstance(func, ast.Attribute) and is_network(module, func.value):
            classes = self._unit.project.instance_classes(module, func.value)
            if all(map(is_network_class, classes)):
                return [func.value]
        on = [func.value] if isinstance(func, ast.Attribute) else []
        return [n for n in (*on, *all_given(call)) if self._ungiven.may_hold(module, n)]

    @cached_property
    def _ungiven(self) -> Ungiven:
        unit = self._unit
        own = initialized(unit)
        given = own | holders(unit.project, unit.near, unit.project.values, own)
        reached = program_of(unit.project).training.losses.reached
        return Ungiven(unit.project, reached, given, lambda function: begins(unit, function))
