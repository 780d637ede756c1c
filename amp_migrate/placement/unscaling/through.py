"""`unscale_` before reads of gradients whose step a helper takes."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import defs, uses
from amp_migrate.flow.paths import leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.steps.indirect import Indirect, taken_like
from amp_migrate.placement.unscaling.one_of_several import (
    handles_overflow,
    inside_helper,
    is_handling,
)
from amp_migrate.placement.unscaling.pending import behind_backward
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.course import Course
from amp_migrate.placement.windows.skipped import accumulates, jumps
from amp_migrate.plan.cannot import Cannot, spoken
from amp_migrate.project.order import Loop, dominates, levels
from amp_migrate.project.rounds import graph_of, may_skip
from amp_migrate.training.steps import Step


def unscale_through(
    unit: Unit, course: Course, through: Indirect, text: str, first: ast.stmt, found: list[Use]
) -> Unscale:
    """Unscale in front of reads whose step a helper takes."""
    seen = through.seen
    result = Unscale(seen.function, first, text)
    taking = [step.call for step in course.alike(seen)]
    result.behind = behind_backward(unit, course, found, taking)
    if result.behind is not None:
        return result
    left = [
        jump
        for jump in jumps(unit.project, seen, first)
        if is_handling(seen.tree, jump) and not handles_overflow(unit, seen, jump, found)
    ]
    if left or course.kept(first, taking):
        raise Cannot(
            "AMP908",
            *seen.at,
            f"{spoken(through.own.function)} steps here, and does not always follow the place where the gradients are read",
            "read the gradients straight before this call, on every way to it, then run again",
        )
    written = {name for use in found for name in defs(use.statement)}
    if _decided_by_norm(unit, through, first, written):
        result.decided = through.own
    result.inside = inside_helper(unit, through, found)
    result.through = seen if result.inside is None else None
    return result


def _decided_by_norm(unit: Unit, through: Indirect, before: ast.stmt, written: set[str]) -> bool:
    """Tell whether a helper may leave out its step, which the norm that it is given decides.

    Gradients are unscaled in front of `before`, and their reads assign `written`. Raises `Cannot` where anything
    else decides: the `update()` of the helper must follow every `unscale_`.
    """
    own, seen = through.own, through.seen
    if _always_steps(unit, own):
        return False
    around = [level for level in levels(own.tree, own.anchor) if level is not own.anchor]
    jumps = [
        node
        for node in own.function.own_nodes
        if isinstance(node, ast.Return) and may_skip(unit.project, own.function, node, own.call)
    ]
    around += [level for jump in jumps for level in levels(own.tree, jump) if level is not jump]
    tests = [level for level in around if isinstance(level, ast.If)]
    looped = any(isinstance(level, Loop) for level in around)
    if not tests and not looped:
        return False
    given = unit.project.arguments(through.site, own.function)
    norms = {name for name, node in given.items() if uses(node) & written}
    sure = not looped and all(
        uses(test.test) & norms and not accumulates(unit, own.function, own.anchor, test)
        for test in tests
    )
    alone = len(unit.project.callers(own.function)) == 1
    if not (sure and alone and dominates(seen.tree, before, seen.call)):
        raise Cannot(
            "AMP908",
            *own.at,
            f"{spoken(own.function)} does not step whenever it is called, and the gradients are read before the call",
            f"read the gradients in {spoken(own.function)} straight before this step, then run again",
        )
    return True


def _always_steps(unit: Unit, own: Step) -> bool:
    """Tell whether a helper steps an optimizer on every way through it, in whatever branch."""
    graph = graph_of(unit.project, own.function)
    return not leads(graph.order(False), [graph.entry], [graph.exit], taken_like(unit, own))
