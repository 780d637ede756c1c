"""Reads of gradients that run where no backward did, too: only those behind one may be scaled, and are unscaled there."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from amp_migrate.flow import leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.windows.course import Course
from amp_migrate.project.order import in_branch, inside, levels
from amp_migrate.project.rounds import points_of, points_of_all, steadily


def behind_backward(
    unit: Unit, course: Course, found: Sequence[Use], taking: Sequence[ast.AST]
) -> ast.stmt | None:
    """Return the last statement of the branch with the backward that some reads follow, outside of it.

    None where they always follow one, or where a way leads on from it past all of what is `taking` its gradients.
    """
    branch = _branch(course, found)
    if branch is None or not _runs_without(unit, course, found):
        return None
    return branch[-1] if not taking or _always_taken(unit, course, branch, taking) else None


def _branch(course: Course, found: Sequence[Use]) -> list[ast.stmt] | None:
    """Return the one branch of an `if` that holds all backwards before some reads, and none of the reads."""
    tree = course.function.module.tree
    before = [b.node for b in course.backwards if any(course.before(b.node, u.node) for u in found)]
    if not before:
        return None
    for level in levels(tree, before[0]):
        if any(inside(tree, use.statement, level) for use in found):
            return None
        branches = (level.body, level.orelse) if isinstance(level, ast.If) else ()
        beside = tree.block(level)
        if all(any(s in beside for s in levels(tree, use.statement)) for use in found):
            held = (b for b in branches if all(in_branch(tree, node, b) for node in before))
            return next(held, None)
    return None


def _runs_without(unit: Unit, course: Course, found: Sequence[Use]) -> bool:
    """Tell whether a run of the function may come to each of some reads before any backward."""
    paths = steadily(unit.project, course.function)
    goals = [points_of(unit.project, course.function, use.node)[:1] for use in found]
    return all(leads(paths, [paths.graph.entry], goal, course.trains) for goal in goals)


def _always_taken(
    unit: Unit, course: Course, branch: list[ast.stmt], taking: Sequence[ast.AST]
) -> bool:
    """Tell whether every way from the backwards of a branch comes to a step before another backward, or the end."""
    paths = steadily(unit.project, course.function)
    graph = paths.graph
    own = {point for stmt in branch for point in graph.within(stmt)}
    stepping = points_of_all(unit.project, course.function, taking)
    starts = [point for point in course.trains if point in own]
    goals = [graph.exit, *(point for point in course.trains if point not in own)]
    goals += starts if len(starts) == 1 else []
    return not leads(paths, starts, goals, stepping)
