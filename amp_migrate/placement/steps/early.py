"""Steps before the first backward, which find no gradients: as they were written to wake up Apex."""

from __future__ import annotations

import ast

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.windows.course import Course
from amp_migrate.project import Function
from amp_migrate.project.order import Loop, inside, levels
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.bindings import is_generator
from amp_migrate.training.steps import Backward, Step


def is_early(unit: Unit, step: Step) -> bool:
    """Tell whether a step runs before all that its function, its callees and callers train."""
    backwards = unit.live_backwards(step.function)
    if backwards:
        first = _precedes(unit, step, backwards)
        return first and not _is_fed(unit, step.function, frozenset())
    return not step.call.args and _is_first(unit, step.function, step.call, frozenset())


def _precedes(unit: Unit, step: Step, backwards: list[Backward]) -> bool:
    """Tell whether a step stands before every backward of its function, in no loop with one; a lambda runs later."""
    tree = step.tree
    if any(isinstance(up, ast.Lambda) for up in tree.ancestors(step.call)) or any(
        runs_before(unit.project, step.function, b.node, step.call) for b in backwards
    ):
        return False
    loops = [lv for lv in levels(tree, step.anchor) if isinstance(lv, Loop)]
    return not any(inside(tree, b.node, loop) for b in backwards for loop in loops)


def _is_fed(unit: Unit, function: Function, seen: frozenset[Function]) -> bool:
    """Tell whether a caller may run a backward before it calls a function, which that does not run itself."""
    for call in unit.project.callers(function):
        course = Course(unit, call.function)
        if call.function not in seen and (
            course.may_train(call.call, [], besides=call.call)
            or _is_fed(unit, call.function, seen | {function})
        ):
            return True
    return False


def _is_first(unit: Unit, function: Function, node: ast.AST, seen: frozenset[Function]) -> bool:
    """Tell whether a node of a function without a backward runs before all that its callees and callers train."""
    course = Course(unit, function)
    if function in seen or is_generator(function) or course.may_train(node, []):
        return False
    callers = unit.project.callers(function)
    if not callers:
        return function.node is None and bool(course.trains)
    return all(_is_first(unit, c.function, c.call, seen | {function}) for c in callers)
