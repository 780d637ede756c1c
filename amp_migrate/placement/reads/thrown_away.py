"""Gradients that are cleared to None between a backward and a step, which then has none: Apex stepped on nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path
from amp_migrate.flow import leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import Clearing, clearing, clears
from amp_migrate.placement.reads.early import before_step
from amp_migrate.placement.windows.course import Course
from amp_migrate.placement.windows.surviving import training
from amp_migrate.project import Function
from amp_migrate.project.order import inside
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.steps import Step, boundary


def thrown_away(
    unit: Unit, function: Function, steps: list[Step]
) -> dict[ast.expr, ast.expr | None]:
    """Return what clears gradients behind a backward and before a step, with the optimizer that it names.

    A GradScaler takes a step without gradients only where it looked for infinite ones before. What a correction moves
    behind the step is left out, and what stands outside of an accumulation boundary.
    """
    tree = function.module.tree
    found = clearing(unit.project)
    candidates = list(_removes(unit, found, function)) if steps else []
    if not candidates:
        return {}
    course = Course(unit, function)
    moved = {zeroing.statement for zeroing in before_step(unit)}
    texts = {step.text for step in steps}
    result: dict[ast.expr, ast.expr | None] = {}
    for node, receiver in candidates:
        if node in unit.gone or tree.statement(node) in moved:
            continue
        named = receiver if receiver is not None and tree.segment(receiver) in texts else None
        meant = [s for s in steps if named is None or s.text == tree.segment(named)]
        if (named is None and len(texts) > 1) or _is_filled_again(unit, node):
            continue
        if any(
            _between(course, node, step, meant) and _beside(course, node, step) for step in meant
        ):
            result[node] = named
    return result


def _removes(
    unit: Unit, found: Clearing, function: Function
) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the expressions that may take gradients away, and what a method that does is called on."""
    for node in function.own_nodes:
        if isinstance(node, ast.Call):
            own = isinstance(node.func, ast.Attribute) and clears(node)
            if own and isinstance(node.func, ast.Attribute) and node.func.attr == "zero_grad":
                if not any(k.arg == "set_to_none" for k in node.keywords) and not node.args:
                    yield node, node.func.value
            elif not own and path(node.func) is not None:
                if found.calls(node) or _may_clear(unit, found, node):
                    yield node, None
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and clears(node):
            yield node.targets[0], None


def _may_clear(unit: Unit, found: Clearing, call: ast.Call) -> bool:
    """Tell whether some run of what is called clears gradients, and none of it takes a step or trains."""
    callees = unit.project.callees(call)
    return any(map(found.ever, callees)) and unit.training.isdisjoint(
        other for callee in callees for other in reachable(unit.project, callee)
    )


def _is_filled_again(unit: Unit, node: ast.expr) -> bool:
    """Tell whether a call runs a backward of its own behind whatever it clears."""
    callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
    for callee in callees:
        graph = graph_of(unit.project, callee)
        order, trains = graph.order(exceptions=False), training(unit, callee, graph)
        cleared = clearing(unit.project).points(callee)
        if leads(order, cleared, [graph.exit], trains):
            return False
    return bool(callees)


def _between(course: Course, node: ast.expr, step: Step, steps: list[Step]) -> bool:
    """Tell whether a node may run behind a backward and before a step, with no other backward or step between.

    What a function without a backward steps on was there when it began.
    """
    stepping = [other.call for other in steps]
    fed = course.may_train(node, stepping) if course.trains else course.begins(node, stepping)
    return fed and course.leads_untrained(node, step.call)


def _beside(course: Course, node: ast.expr, step: Step) -> bool:
    """Tell whether no test keeps a step from what clears on every micro-batch."""
    limits = [boundary(step, backward.node) for backward in course.backwards]
    if all(limit is None or inside(step.tree, node, limit) for limit in limits):
        return True
    return course.always_comes(node, [other.call for other in course.alike(step)])
