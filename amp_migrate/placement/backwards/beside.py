"""Plain backward passes that stay plain beside scaled ones, with whose gradients theirs must not meet."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from functools import partial
from typing import NamedTuple

from amp_migrate.facts.paths import path
from amp_migrate.flow import leads
from amp_migrate.placement.backwards.probes import cleared
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.zeroing import is_zero_grad
from amp_migrate.plan.cannot import Cannot, place_of
from amp_migrate.project import Function, Module
from amp_migrate.project.order import exclusive
from amp_migrate.project.reach import calls_to
from amp_migrate.project.rounds import graph_of, points_of, points_of_all, runs_before
from amp_migrate.training.contexts import keeps_no_graph
from amp_migrate.training.steps import Backward, Step


def keep_spent(unit: Unit) -> None:
    """Move the plain backward passes whose gradients are cleared before others join them from `backwards` to `beside`.

    What reads the gradients in between reads them as they are: the step that looks ahead of first-order meta-learning.
    """
    scaled = [b for b in unit.backwards if b.scaled]
    models: Parts | None = None
    for backward in [b for b in unit.backwards if not b.scaled]:
        alone = backward.node not in unit.gone and backward.node not in unit.folded
        if not scaled or not alone:
            continue
        models = models or _parts(unit, list(unit.models()))
        here = _is_spent(unit, models, backward.function, backward.node)
        if here or _is_spent_by_callers(unit, models, backward.function, frozenset()):
            unit.backwards.remove(backward)
            unit.beside.append(backward)
            unit.spent |= set() if here else {backward}


def _is_spent(unit: Unit, models: Parts, function: Function, node: ast.AST) -> bool:
    """Tell whether a function clears the gradients of what it runs backward at a node before others join them."""
    zeroings = list(_zeroings(unit, models, function))
    return bool(zeroings) and _cleared_behind(
        unit, function, node, zeroings, _joining(unit, function, node)
    )


def _is_spent_by_callers(
    unit: Unit, models: Parts, function: Function, around: frozenset[Function]
) -> bool:
    """Tell whether a function does nothing else for a training, and all that call it clear the gradients before others join them."""
    calls = unit.project.callers(function)
    if function in around or unit.steps_of(function) or unit.project.escapes(function):
        return False
    if len(unit.backwards_of(function)) > 1:
        return False
    return bool(calls) and all(
        _is_spent(unit, models, site.function, site.call)
        or _is_spent_by_callers(unit, models, site.function, around | {function})
        for site in calls
    )


def _joining(unit: Unit, function: Function, node: ast.AST) -> list[ast.AST]:
    """Return what else than a node runs a backward or steps in a function."""
    training = {b.function for b in unit.backwards} | {s.function for s in unit.steps}
    direct: list[ast.AST] = [b.node for b in unit.backwards_of(function)]
    direct += [step.call for step in unit.steps_of(function)]
    return [n for n in (*direct, *calls_to(unit.project, function, training)) if n is not node]


def refuse_mixed(unit: Unit) -> None:
    """Refuse a plain backward that stays, where its gradients may meet scaled ones in a step of the unit.

    Apex unscales each backward by itself; natively all gradients that meet in a step must have one scale. What
    stays in `unit.beside` runs where the scaler is at hand: its forwards are cast, as O1 casts everything.
    """
    models = _parts(unit, list(unit.models())) if unit.beside else Parts(set(), set())
    kept: list[Backward] = []
    for backward in unit.beside:
        tree, function = backward.module.tree, backward.function
        own = unit.live_backwards(function)
        scaled = [b for b in own if not exclusive(tree, b.node, backward.node)]
        if backward.node in unit.gone or (own and not scaled):
            continue
        if backward in unit.spent:
            kept.append(backward)
            continue
        steps = unit.live_steps()
        if scaled:
            steps = [s for s in steps if s.function is function]
        elif not _runs_model(unit, backward, models):
            continue
        if scaled or unit.home.is_attribute(function):
            kept.append(backward)
        zeroings = partial(_zeroings, unit, models)
        others: list[ast.AST] = [*(b.node for b in scaled), *(s.call for s in steps)]
        cleared_here = list(zeroings(function))
        if not _cleared_behind(unit, function, backward.node, cleared_here, others):
            for step in steps:
                if not cleared(unit, step, backward, zeroings):
                    raise _cannot(backward, step)
    unit.beside = kept


class Parts(NamedTuple):
    """Expressions by how they are written, and by the groups of values that they belong to."""

    names: set[str | None]
    groups: set[Hashable]


def _parts(unit: Unit, nodes: list[tuple[Module, ast.expr]]) -> Parts:
    groups: set[Hashable] = set()
    for module, node in nodes:
        groups |= unit.project.values.groups(module, node)
    return Parts({path(node) for _, node in nodes}, groups)


def _runs_model(unit: Unit, backward: Backward, models: Parts) -> bool:
    """Tell whether a function runs a model of the unit, with gradients that its backward may reach."""
    module = backward.module
    tree, values = module.tree, unit.project.values
    for call in backward.function.calls:
        if not call.args:
            continue
        if not runs_before(unit.project, backward.function, call, backward.node):
            continue
        ran = values.groups(module, call.func) & models.groups
        up = tree.parent(call)
        detached = isinstance(up, ast.Attribute) and up.attr in ("detach", "data")
        if ran and not detached and not keeps_no_graph(unit.project, module, call):
            return True
    return False


def _zeroings(unit: Unit, models: Parts, function: Function) -> Iterator[ast.stmt]:
    """Yield the ``zero_grad()`` of a function that clear what an optimizer of the unit steps."""
    values, module = unit.project.values, function.module
    optimizers = _parts(unit, [(step.module, step.optimizer) for step in unit.steps])
    stepped = [n for step in unit.steps for n in _trained(unit, step.module, step.optimizer)]
    for stmt in function.own_nodes:
        if not isinstance(stmt, ast.stmt) or not is_zero_grad(stmt):
            continue
        receiver = stmt.value.func.value  # type: ignore[attr-defined]
        if (
            path(receiver) in optimizers.names | models.names
            or values.groups(module, receiver) & (optimizers.groups | models.groups)
            or any(o <= held for held in _trained(unit, module, receiver) for o in stepped)
        ):
            yield stmt


def _trained(unit: Unit, module: Module, optimizer: ast.expr) -> Iterator[set[int]]:
    """Yield the networks that an optimizer trains, for each that an expression may hold."""
    objects = unit.losses.objects
    numbers = objects.optimizers_of(module, optimizer)
    return (o.networks for o in objects.optimizers if o.number in numbers and o.networks)


def _cleared_behind(
    unit: Unit,
    function: Function,
    node: ast.AST,
    zeroings: list[ast.stmt],
    others: list[ast.AST],
) -> bool:
    """Tell whether gradients are cleared behind a backward, or a call of one, whenever it runs, before another backward or step."""
    points = partial(points_of, unit.project, function)
    order = graph_of(unit.project, function).order(exceptions=False)
    clear = points_of_all(unit.project, function, zeroings)
    taken = [point for other in others for point in points(other)[:1]]
    starts = points(node)[-1:]
    always = all(order.must_reach(start, clear) for start in starts)
    return always and not leads(order, starts, taken, clear)


def _cannot(backward: Backward, step: Step) -> Cannot:
    there = place_of(step.module, step.call)
    return Cannot(
        "AMP905",
        *backward.at,
        "this backward belongs to an optimizer that amp.initialize does not get, and stays unscaled, but the gradients "
        f"that it gives may meet scaled ones in the step of {step.text} ({there})",
        f"run this backward where no gradients of {step.text} wait for its step, and call {step.text}.zero_grad() behind "
        "it, then run again",
        (there,),
    )
