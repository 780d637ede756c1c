"""Forward passes of networks that no initialize was given, in programs that run with Apex: O1 casts them too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from amp_migrate.apex.sites import Kind
from amp_migrate.autocast.evaluated.evaluation import region_of
from amp_migrate.autocast.evaluated.inference import before_apex, without_gradients
from amp_migrate.autocast.evaluated.unfed import feeds_nothing, is_part
from amp_migrate.autocast.regions import merged
from amp_migrate.facts.closure import closure
from amp_migrate.placement.finding.networks import initialized, is_made_anew
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.reach import reachable
from amp_migrate.training.beliefs import RUNS_FORWARD
from amp_migrate.training.forwards.classes import is_network_class
from amp_migrate.training.forwards.forwards import made_network
from amp_migrate.training.forwards.holders import used_as_networks
from amp_migrate.training.forwards.indifferent import keeps_type
from amp_migrate.training.initialized.on_cpu import runs_on_cpu
from amp_migrate.training.region import Region, nodes_in, run_in


def others(unit: Unit, known: list[Region]) -> list[Region]:
    """Return the forwards and losses of other networks, outside of `known` regions and those that train the unit.

    O2 and O3 patch the networks that they are given, and no function of torch: there are none then.
    """
    levels = {unit.options[site].level for site in unit.of(Kind.INITIALIZE)}
    if unit.outside or levels & {"O2", "O3"}:
        return []
    models = initialized(unit)
    cast, trained = run_in(unit.project, known), unit.trained_below()
    taken = unit.trained_nodes() | nodes_in(known)
    found = merged(
        [
            region_of(unit, module, module.tree.statement(node))
            for module, node in unit.calls()
            if node not in taken
            and unit.project.function_of(module, node) not in cast
            and not _is_under(unit, unit.project.function_of(module, node), taken, trained)
            and node not in unit.gone
            and (network := _run(unit, module, node, taken)) is not None
            and not unit.project.values.groups(module, network) & models
            and not is_made_anew(unit, module, network)
            and _stands_alone(unit, module, node)
            and not runs_on_cpu(unit.project, unit.losses, module, node)
            and not _trains(unit, module, network)
        ]
    )
    return [region for region in found if not before_apex(unit, region)]


def trains_aside(unit: Unit, region: Region) -> bool:
    """Tell whether the function of a region runs a backward of its own, and none of the unit, for what that computes."""
    function = region.function
    if unit.backwards_of(function):
        return False
    run = [node for node in nodes_in([region]) if isinstance(node, ast.Call)]
    losses = [
        loss
        for call in function.calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
        if not unit.project.callees(call)
        for loss in (call.func.value, *call.args)
    ]
    return any(unit.losses.computes(function, loss, node) for loss in losses for node in run)


def _stands_alone(unit: Unit, module: Module, node: ast.Call) -> bool:
    """Tell whether a forward is no part of another one, and no backward pass comes to it."""
    if without_gradients(unit, module, node):
        return not is_part(unit, module, node)
    return feeds_nothing(unit, module, node)


def _is_under(
    unit: Unit, function: Function, taken: AbstractSet[ast.AST], trained: AbstractSet[Function]
) -> bool:
    """Tell whether a function runs in the blocks of what trains alone."""
    calls = unit.project.callers(function)
    return bool(calls) and all(s.call in taken or s.function in trained for s in calls)


def _trains(unit: Unit, module: Module, func: ast.expr) -> bool:
    """Tell whether the forward pass of a network runs a backward or a step of the unit."""
    trains = unit.training
    forwards = unit.project.methods(module, func, "forward")
    return any(trains & reachable(unit.project, f) for f in forwards)


def _run(
    unit: Unit, module: Module, call: ast.Call, taken: AbstractSet[ast.AST]
) -> ast.expr | None:
    """Return the network that a call is the forward pass of, by itself or by a method, if that runs what is not `taken`."""
    func = call.func
    if is_network(unit, module, func):
        return func
    if not isinstance(func, ast.Attribute):
        return None
    if _runs_parts(unit, call, taken) and is_network(unit, module, func.value):
        return func.value
    if func.attr not in RUNS_FORWARD:
        return None
    used = unit.project.values.group(module, func.value) in _used(unit.project)
    return func.value if used and not unit.project.callees(call) else None


def _runs_parts(unit: Unit, call: ast.Call, taken: AbstractSet[ast.AST]) -> bool:
    """Tell whether a call runs a method of the project that runs networks, as the layers of its own, outside of `taken`."""

    def calls(function: Function) -> Iterator[ast.Call]:
        return (part for part in function.calls if part not in taken)

    callees = unit.project.callees
    run = closure(callees(call), lambda f: (c for part in calls(f) for c in callees(part)))
    return any(
        function.cls is not None and is_network(unit, function.module, part.func)
        for function in run
        for part in calls(function)
    )


def is_network(unit: Unit, module: Module, func: ast.expr) -> bool:
    """Tell, by what it was made of or put into and not by its name, whether a call is the forward pass of a network."""
    if not isinstance(func, ast.Name | ast.Attribute | ast.Subscript):
        return False
    made = made_network(unit.project, module, func)
    if made is not None:
        return made and not all(map(keeps_type, unit.project.values.made_by(module, func)))
    classes = unit.project.instance_classes(module, func)
    if any(map(is_network_class, classes)):
        return unit.forwards.is_network(module, func)
    return unit.project.values.group(module, func) in _used(unit.project)


@once
def _used(project: Project) -> frozenset[int]:
    return used_as_networks(project, project.values)
