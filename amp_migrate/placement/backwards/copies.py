"""The fp16 copies of weights that Apex kept until amp.scale_loss ended, over what writes the weights before that."""

from __future__ import annotations

import ast
from functools import partial

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.order import exclusive
from amp_migrate.project.reach import calls_to, reached_by
from amp_migrate.project.rounds import may_follow
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.steps import Backward


def outdated(unit: Unit, backward: Backward) -> ast.stmt | None:
    """Return what writes weights behind a plain backward whose forward left copies of them, which a later forward took.

    None where amp.scale_loss, which renews the copies, always comes first.
    """
    function = backward.function
    scaling = {b.function for b in unit.backwards if b.scaled}
    below = set(calls_to(unit.project, function, scaling))
    tree, own = function.module.tree, unit.backwards_of(function)
    scaled = [b.node for b in own if b.scaled]
    instead = {b.node for b in own if any(exclusive(tree, b.node, node) for node in scaled)}
    renewed = {*below, *scaled, *instead}
    runs = partial(may_follow, unit.project, function)
    forwards = {n: _events(unit, function, n, Kind.FORWARD) for n in function.own_nodes}
    forwards = {node: events for node, events in forwards.items() if events}
    for node in function.own_nodes:
        writes = _events(unit, function, node, Kind.WEIGHT_WRITE, Kind.STEP)
        if not writes or node in below or not runs(backward.node, node, renewed):
            continue
        for later, events in forwards.items():
            meet = any(_of_one(w, f) for w in writes for f in events)
            if meet and runs(node, later, renewed - {later}):
                return tree.statement(node)
    return None


def _events(unit: Unit, function: Function, node: ast.AST, *kinds: Kind) -> list[Event]:
    """Return the events of some kinds at a node, and in what it calls."""
    happens = program_of(unit.project).training.of
    held = [*happens(function).get(node, ())]
    if isinstance(node, ast.Call):
        reached = reached_by(unit.project, node)
        held += (e for f in reached for events in happens(f).values() for e in events)
    return [event for event in held if event.kind in kinds]


def _of_one(write: Event, forward: Event) -> bool:
    """Tell whether a forward may run a network whose weights something writes."""
    if write.kind is Kind.STEP:
        if write.optimizers is None or forward.optimizers is None:
            return True
        return not write.optimizers.isdisjoint(forward.optimizers)
    return not (write.networks and forward.networks) or bool(write.networks & forward.networks)
