"""Which networks a unit initialized."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Module
from amp_migrate.training.forwards.holders import copied_by


def initialized(unit: Unit) -> set[int]:
    """Return the groups of the networks that a unit initialized, or trains in the place of programs out of sight."""
    values = unit.project.values
    groups: set[int] = set()
    for module, node in unit.models():
        groups |= values.groups(module, node)
    groups |= _handed(unit)
    if unit.home.callers.alone or unit.home.makers:
        for module, call in unit.trained_calls():
            if unit.forwards.is_network(module, call.func):
                groups |= values.groups(module, call.func)
    return groups | _copies(unit, groups)


def casts_these_alone(unit: Unit) -> bool:
    """Tell whether Apex cast the networks that it was given, and no function of torch: at O2 and O3."""
    levels = {unit.options[site].level for site in unit.of(Kind.INITIALIZE)}
    return bool(levels) and levels <= {"O2", "O3"}


def _copies(unit: Unit, networks: set[int]) -> set[int]:
    """Return the groups of the copies and running averages that are made of some networks."""
    values = unit.project.values
    return {
        group
        for module, call in unit.calls()
        for origin, node in copied_by(unit.project, module, call)
        if values.groups(origin, node) & networks
        for group in values.groups(module, call)
    }


def is_made_anew(unit: Unit, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression holds a network of a function that several call: each initializes one of its own."""
    values = unit.project.values
    return any(values.made_like(module, node, origin, model) for origin, model in unit.models())


def _handed(unit: Unit) -> set[int]:
    """Return the networks of the files that hand amp on, as what initializes there returns them."""
    values = unit.project.values
    models = list(unit.models())
    return {
        group
        for module in {function.module for function in unit.home.makers}
        for call in module.tree.nodes(ast.Call)
        if unit.forwards.is_network(module, call.func)
        and any(values.same(module, call.func, origin, node) for origin, node in models)
        for group in values.groups(module, call.func)
    }
