"""Gradients that are read and then cleared without a step: a dry run that fills the memory before training."""

from __future__ import annotations

import ast
from functools import partial

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.reads.zeroing import is_zero_grad
from amp_migrate.project import Function
from amp_migrate.project.order import Loop, beside, comes_to, inside, levels, position
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steps import Step, children_of


def cleared(unit: Unit, function: Function, use: Use) -> ast.Expr | None:
    """Return the ``optimizer.zero_grad()`` that ends what a read of gradients belongs to; None where a step does.

    `update()` may stand there: nothing in the function holds gradients then that a step takes.
    """
    tree = function.module.tree
    runs = partial(runs_before, unit.project, function)
    steps = [s for s in unit.live_steps(function) if runs(use.node, s.call)]
    zeroing = _next(unit, function, use.statement, steps)
    if zeroing is None or any(isinstance(lv, Loop) for lv in levels(tree, use.statement)):
        return None
    name = cleared_optimizer(function, zeroing)
    named = tree.segment(use.optimizer) if use.optimizer is not None else name
    if named != name or name not in {step.text for step in steps}:
        return None
    if not all(_fed_anew(unit, step, zeroing) for step in steps):
        return None
    if not _always_fed(unit, function, use, zeroing):
        return None
    jumps = (n for n in function.own_nodes if isinstance(n, ast.Return | ast.Raise))
    if any(runs(use.statement, jump, [zeroing]) for jump in jumps):
        return None
    return zeroing


def cleared_optimizer(function: Function, zeroing: ast.Expr) -> str:
    """Return the optimizer of a ``zero_grad()`` as it is written."""
    assert isinstance(zeroing.value, ast.Call) and isinstance(zeroing.value.func, ast.Attribute)
    return function.module.tree.segment(zeroing.value.func.value)


def place(function: Function, found: list[Use], zeroing: ast.Expr) -> ast.stmt:
    """Return the statement beside a ``zero_grad()`` before which to unscale what is read before it."""
    tree = function.module.tree
    return children_of(tree, [*(use.statement for use in found), zeroing])[0]


def _always_fed(unit: Unit, function: Function, use: Use, zeroing: ast.Expr) -> bool:
    """Tell whether a backward always runs between a read and the start of the block of a ``zero_grad()``."""
    tree = function.module.tree
    block = tree.block(zeroing)
    top = beside(tree, use.statement, zeroing)
    return (
        top is not None
        and not unit.trains(function.module, top)
        and any(_runs(unit, function, stmt) for stmt in block[: position(tree, top)])
    )


def _runs(unit: Unit, function: Function, stmt: ast.stmt) -> bool:
    """Tell whether a statement runs a backward on every way through it."""

    def runs(part: ast.stmt) -> bool:
        if isinstance(part, ast.With):
            return comes_to(part.body, runs)
        return isinstance(part, ast.Expr) and unit.trains(function.module, part)

    return comes_to([stmt], runs)


def _next(unit: Unit, function: Function, stmt: ast.stmt, steps: list[Step]) -> ast.Expr | None:
    """Return the zero_grad that follows a statement in any case, before anything trains or steps."""
    tree = function.module.tree
    for level in levels(tree, stmt):
        for later in tree.block(level)[position(tree, level) + 1 :]:
            if isinstance(later, ast.Expr) and is_zero_grad(later):
                if cleared_optimizer(function, later) in {step.text for step in steps}:
                    return later
            stepped = any(inside(tree, step.call, later) for step in steps)
            if stepped or unit.trains(function.module, later):
                return None
    return None


def _fed_anew(unit: Unit, step: Step, zeroing: ast.Expr) -> bool:
    """Tell whether a backward runs between the zero_grad and a step."""
    return any(
        runs_before(unit.project, step.function, zeroing, backward.node)
        and runs_before(unit.project, step.function, backward.node, step.call)
        for backward in unit.live_backwards(step.function)
    )
