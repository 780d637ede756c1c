"""Methods of a network that travel as functions: ``nearest(model.encode, bank)`` runs it where it calls what it was given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import outward
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.training.forwards.classes import is_of_network
from amp_migrate.training.forwards.forwards import Forward


def run_as_functions(unit: Unit, models: set[int]) -> Iterator[tuple[Module, ast.Call]]:
    """Yield the calls, by whatever name, of methods that are taken from one of some networks and run it."""
    for method in _taken(unit, models):
        for site in unit.project.callers(method):
            module, call = site.function.module, site.call
            named = isinstance(call.func, ast.Attribute) and call.func.attr == method.name
            if site.partial or named or method not in unit.project.callees(call):
                continue
            if unit.forwards.call(module, call) is Forward.NETWORK:
                yield module, call


def _taken(unit: Unit, models: set[int]) -> list[Function]:
    """Return the methods of networks that are taken from one of some without being called there."""
    project, found = unit.project, dict[Function, None]()
    methods = {
        f.name for module in unit.near for f in module.functions.values() if f.takes_receiver
    }
    for module in unit.near:
        for node in module.tree.nodes(ast.Attribute):
            up = module.tree.parent(node)
            if node.attr not in methods or not isinstance(node.ctx, ast.Load):
                continue
            if isinstance(up, ast.Call) and up.func is node:
                continue
            if any(project.values.groups(module, part) & models for part in outward(node.value)):
                meant = project.meanings(module, node)
                found |= {m: None for m in meant if isinstance(m, Function) and is_of_network(m)}
    return list(found)
