"""Plain backward passes for an optimizer that Apex does not know, beside scaled ones: their gradients must not meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path, walk
from amp_migrate.project import Function
from amp_migrate.unit.apart import elements
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import Loop, common, dominates, exclusive, inside, key, levels
from amp_migrate.unit.sites import Kind
from amp_migrate.unit.steps import Backward, Step
from amp_migrate.unit.unit import Unit
from amp_migrate.unit.zeroing import is_zero_grad


def refuse_mixed(unit: Unit, gone: set[ast.AST]) -> None:
    """Refuse a plain backward that stays, where its gradients may reach a step of the unit, or scaled ones its own.

    Apex unscales each backward by itself; natively all gradients that meet in a step must have one scale.
    """
    for backward in unit.beside:
        tree, function = backward.module.tree, backward.function
        scaled = [
            b
            for b in unit.backwards_of(function)
            if b.node not in gone and not exclusive(tree, b.node, backward.node)
        ]
        if not scaled or backward.node in gone:
            continue
        zeroings = list(_zeroings(unit, function))
        steps = [s for s in unit.steps_of(function) if s.call not in gone]
        if not _cleared_behind(backward, zeroings, [*scaled, *steps]):
            for step in steps:
                if not any(_clears(step, backward, zeroing) for zeroing in zeroings):
                    raise _cannot(backward, step)


def _zeroings(unit: Unit, function: Function) -> Iterator[ast.stmt]:
    """Yield the ``zero_grad()`` of a function that clear what an optimizer of the unit steps."""
    values, module = unit.project.values, function.module
    models = [
        (site.module, node)
        for site in unit.of(Kind.INITIALIZE)
        for node in elements(unit.options[site].arguments.get("models"))
    ]
    optimizers = [(step.module, step.optimizer) for step in unit.steps]
    groups = {g for m, node in [*models, *optimizers] for g in values.groups(m, node)}
    names = {path(node) for _, node in [*models, *optimizers]}
    stepped = [_built_from(function, path(node)) for _, node in optimizers]
    for stmt in walk(function.scope):
        if not isinstance(stmt, ast.stmt) or not is_zero_grad(stmt):
            continue
        receiver = stmt.value.func.value  # type: ignore[attr-defined]
        text = path(receiver)
        built = _built_from(function, text)
        if (
            text in names
            or values.groups(module, receiver) & groups
            or any(ours and ours <= built for ours in stepped)
        ):
            yield stmt


def _built_from(function: Function, name: str | None) -> set[str]:
    """Return what is first given to the constructors of an optimizer in its function."""
    return {
        ast.unparse(node.value.args[0])
        for node in walk(function.scope)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and node.value.args
        and name is not None
        and any(path(target) == name for target in node.targets)
    }


def _cleared_behind(
    backward: Backward, zeroings: list[ast.stmt], others: list[Backward | Step]
) -> bool:
    """Tell whether gradients are cleared behind a backward whenever it runs, before another backward or step."""
    tree = backward.module.tree
    nodes = [o.node if isinstance(o, Backward) else o.call for o in others]
    for stmt in zeroings:
        pair = common(tree, stmt, backward.node)
        always = pair is not None and pair[0] is stmt and pair[1] is not stmt
        if always and key(backward.node) < key(stmt):
            if not any(key(backward.node) < key(node) < key(stmt) for node in nodes):
                return True
    return False


def _clears(step: Step, backward: Backward, zeroing: ast.stmt) -> bool:
    """Tell whether a zero_grad stands between a plain backward and a step on every way there."""
    tree = step.tree
    if not dominates(tree, zeroing, step.call):
        return False
    outer = set(levels(tree, zeroing))
    loops = [lv for lv in levels(tree, step.call) if isinstance(lv, Loop) and lv not in outer]
    return not key(zeroing) < key(backward.node) < key(step.call) and not any(
        inside(tree, backward.node, loop) for loop in loops
    )


def _cannot(backward: Backward, step: Step) -> Cannot:
    return Cannot(
        "AMP905",
        backward.module,
        backward.node,
        "this backward belongs to an optimizer that amp.initialize does not get, and stays unscaled, but the gradients "
        f"that it gives may meet scaled ones in the step in {step.module.path}:{step.call.lineno}",
        "clear what the step reads with zero_grad() behind this backward, or detach what the loss is computed from "
        "and clear it before the scaled backward; then run again",
    )
