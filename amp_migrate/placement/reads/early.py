"""A ``zero_grad()`` between a backward and the step that takes its gradients: it throws them away."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.helped import helped
from amp_migrate.placement.reads.zeroing import (
    Zeroing,
    backward_before,
    cleared_by,
    is_zero_grad,
    only_clears,
)
from amp_migrate.project.order import loop_of, position
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steps import Step, is_one, outermost_anchor


def before_step(unit: Unit) -> Iterator[Zeroing]:
    """Yield the zero_grad statements that stand between the backward and the step of one iteration.

    Where other rounds step as well, those count alone that name the optimizer of the step.
    """
    for step, backward, alone in _candidates(unit):
        if backward is not None:
            yield from _cleared_between(unit, step, backward, alone)
        elif alone and _is_fed_by_callers(unit, step):
            yield from _cleared_first(unit, step)


def _candidates(unit: Unit) -> Iterator[tuple[Step, ast.AST | None, bool]]:
    """Yield the steps, those of helpers last, each with the backward before it and whether it is the only one there."""
    for step in unit.steps:
        own = unit.steps_of(step.function)
        if step.call not in unit.gone and _is_alone(step, own):
            backward = backward_before(unit, step, called=step.function.node is not None)
            alone = len({outermost_anchor(s) for s in own}) == 1
            yield step, backward.node if backward is not None else None, alone
    yield from ((item.step, item.backward, item.alone) for item in helped(unit))


def _is_alone(step: Step, own: list[Step]) -> bool:
    """Tell whether a step is the first at its place, and no other place of its function steps in its rounds."""
    anchor = outermost_anchor(step)
    here = [s for s in own if outermost_anchor(s) is anchor]
    loop = loop_of(step.tree, anchor)
    return here[0] is step and all(
        loop is not None and loop_of(s.tree, outermost_anchor(s)) is not loop
        for s in own
        if s not in here
    )


def _cleared_between(unit: Unit, step: Step, backward: ast.AST, alone: bool) -> Iterator[Zeroing]:
    """Yield the zero_grad statements of the block of a step that run behind a backward of its round.

    Where it is not `alone`, they have to name its optimizer.
    """
    anchor = outermost_anchor(step)
    for stmt in step.tree.block(anchor)[: position(step.tree, anchor)]:
        alike = loop_of(step.tree, backward) is loop_of(step.tree, stmt)
        if alike and _clears(unit, step, stmt, alone) and not _trains_between(unit, step, stmt):
            if runs_before(unit.project, step.function, backward, stmt):
                yield Zeroing(step.module, stmt, step, False)


def _clears(unit: Unit, step: Step, stmt: ast.stmt, alone: bool) -> bool:
    """Tell whether a statement only clears gradients, of the optimizer of a step where that is not `alone`."""
    if alone:
        return only_clears(unit.project, stmt)
    return is_zero_grad(stmt) and is_one(
        unit.project, step.module, cleared_by(stmt), step.optimizer
    )


def _is_fed_by_callers(unit: Unit, step: Step) -> bool:
    """Tell whether a function that runs no backward steps on gradients of its callers."""
    function, project = step.function, unit.project
    running = {b.function for b in unit.backwards}
    if not running.isdisjoint(reachable(project, function)):
        return False
    return any(
        runs_before(project, site.function, backward.node, site.call)
        for site in project.callers(function)
        for backward in unit.backwards_of(site.function)
    )


def _cleared_first(unit: Unit, step: Step) -> Iterator[Zeroing]:
    """Yield the zero_grad statements of the block of a step that a function runs before it."""
    anchor = outermost_anchor(step)
    for stmt in step.tree.block(anchor)[: position(step.tree, anchor)]:
        if only_clears(unit.project, stmt):
            yield Zeroing(step.module, stmt, step, False)


def _trains_between(unit: Unit, step: Step, stmt: ast.stmt) -> bool:
    """Tell whether a backward runs between a zero_grad and the step, maybe in a helper."""
    block = step.tree.block(stmt)
    end = position(step.tree, outermost_anchor(step))
    between = block[position(step.tree, stmt) + 1 : end]
    return any(unit.trains(step.module, part) for part in between)
