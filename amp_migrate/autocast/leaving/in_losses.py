"""What computes losses in fp16 under autocast of what networks hand out: O2 and O3 had it in fp32, outside of the networks."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from amp_migrate.apex.sites import Kind as SiteKind
from amp_migrate.autocast import bce
from amp_migrate.autocast.leaving.computed import NOT_BY_NATIVE, Computed, Computing
from amp_migrate.autocast.spared.outside import Outside
from amp_migrate.autocast.spared.statements import nodes_of
from amp_migrate.facts.below import children
from amp_migrate.facts.paths import walk
from amp_migrate.placement.finding.networks import casts_these_alone
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.training.beliefs import RUNS_FORWARD
from amp_migrate.training.bindings import returned
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.outputs import outputs
from amp_migrate.training.region import Region, calls_of, functions_run, parts_of, run_by

_NARROW = NOT_BY_NATIVE | {"cos", "erf", "gelu", "mean", "sin", "sqrt"}
"""Functions and methods of torch that give fp16 of fp16, in the blocks of autocast as well."""


def in_losses(unit: Unit, regions: Iterable[Region]) -> list[Computed]:
    """Return what must be made fp32 on the way to the losses of some regions, where O1 is never on.

    Where it may be, the losses were fp16 there as they are now; older interfaces handed out fp16.
    """
    older = any(site.module.tree.older.written for site in unit.of(SiteKind.INITIALIZE))
    if older or not casts_these_alone(unit):
        return []
    return list(_InLosses(unit, list(regions)).found())


class _InLosses(Computing):
    """Looks through what computes losses outside of the networks, and what that calls with what they hand out.

    What binary cross entropy is given becomes fp32 with it.
    """

    def __init__(self, unit: Unit, regions: list[Region]) -> None:
        super().__init__(unit, regions, True)
        self._parts = [*parts_of(regions), *unit.inlined]
        self._cast = self._cast | {node for _, part in unit.inlined for node in walk(part)}
        self._under = self._under | run_by(unit.project, calls_of(unit.inlined))

    @property
    def _functions(self) -> frozenset[str]:
        return _NARROW

    def _is_seen(self, function: Function) -> bool:
        if is_of_network(function):
            return False
        return function not in self._under or self._outside.holds(function)

    def _is_asked(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a node computes a loss, or runs a function that gives one among other things."""
        if bce.calls(self._unit, module, module.tree.statement(node)):
            return False
        computing = self._losses.computing
        if node in computing or not isinstance(node, ast.Call):
            return node in computing
        return any(
            part in computing
            for callee in self._run(module, node)
            for value in returned(callee)
            if isinstance(value, ast.Tuple | ast.Dict)
            for part in children(value)
        )

    def _run(self, module: Module, call: ast.Call) -> list[Function]:
        """Return the functions that a call runs, which may be the forward of a criterion."""
        return functions_run(self._project, module, call)

    def _is_used(self, call: ast.Call, callees: list[Function], given: ast.expr) -> bool:
        """Tell whether a call runs no network that makes fp16 of what it is given, and something that computes with it."""
        module = self._project.module_of(call)
        held = [call.func]
        if isinstance(call.func, ast.Attribute) and call.func.attr in RUNS_FORWARD:
            held.append(call.func.value)
        groups = self._project.values.groups
        if any(groups(module, each) & self._models for each in held):
            return False
        return any(self._uses(*each) for each in self._names(call, callees, given))

    def _names(
        self, call: ast.Call, callees: list[Function], given: ast.expr
    ) -> list[tuple[Function, str]]:
        function = self._project.holder(call)
        forwards = [callee for callee in callees if callee not in self._project.callees(call)]
        site = CallSite(function, call, bound=True)
        return super()._names(call, callees, given) + [
            (callee, name)
            for callee in forwards
            for name, value in self._project.arguments(site, callee).items()
            if value is given
        ]

    def _is_half(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a value is what a network gave that Apex was given, and no part of one alone."""
        if not super()._is_half(function, node):
            return False
        groups, module_of = self._project.values.groups, self._project.module_of
        made = outputs(self._project, self._losses, function, node, self._sinks)
        return any(groups(module_of(call), call.func) & self._models for call in made)

    @cached_property
    def _outside(self) -> Outside:
        return Outside(self._unit, self._parts, nodes_of(self._project, self._parts))
