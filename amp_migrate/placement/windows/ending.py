"""What becomes of the micro-batches of a window that the end of their loop cuts short."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.mark import Mark
from amp_migrate.flow import Point, leads
from amp_migrate.flow.cfg.subject import Fork, evaluated, is_fork, question
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.windows.counting import asks_for_several, counted_by, waits_to_count
from amp_migrate.placement.windows.surviving import ending, meets_again, onward, training
from amp_migrate.project import Function
from amp_migrate.project.rounds import graph_of, points_of
from amp_migrate.training.origins.switches import feasible


class Rest(Mark):
    """What becomes of gradients that no step took."""

    STAYS = "stays"  # the next backward adds to them
    CLEARED = "cleared"  # something clears them before the next backward
    UNUSED = "unused"  # no backward follows


def rest(unit: Unit, function: Function, limit: Fork) -> Rest:
    """Return what becomes of the gradients behind the last round of the loop in which `limit` counts."""
    ends = list(_ends(unit, function, evaluated(limit), frozenset({function})))
    found = Rest.UNUSED if ends else Rest.STAYS
    for where, points in ends:
        if _stays(unit, where, points, _asked_again(unit, where, limit)):
            return Rest.STAYS
        unseen = where.node is not None and not unit.project.callers(where)
        if unseen or meets_again(unit, where, points, frozenset()):
            found = Rest.CLEARED
    return found


def _ends(
    unit: Unit, function: Function, node: ast.AST, below: frozenset[Function]
) -> Iterator[tuple[Function, list[Point]]]:
    """Yield where the loop ends that runs a node: the innermost of its function, or those around the calls of that."""
    order = graph_of(unit.project, function).order(exceptions=False)
    at = points_of(unit.project, function, node)[:1]
    around = order.loops_of(at[0])[:1] if at else ()
    for loop in around:
        yield function, list(dict.fromkeys(edge.target for edge in loop.exits))
    for site in unit.project.callers(function) if not around else ():
        if site.function not in below:
            yield from _ends(unit, site.function, site.call, below | {site.function})


def _stays(unit: Unit, function: Function, points: list[Point], again: list[Point]) -> bool:
    """Tell whether gradients that are there at some points of a function may get to a backward uncleared."""
    if _begins_empty(unit, function, points, again):
        return False
    project, end = unit.project, graph_of(unit.project, function).exit
    within = [point for point in points if point is not end]
    if within and onward(unit, function, within, again) is not None:
        return True
    if end not in points or function.node is None:
        return False
    callers = project.callers(function)
    return not callers or any(
        onward(unit, site.function, ending(project, site, function), [], frozenset({function}))
        for site in callers
    )


def _begins_empty(unit: Unit, function: Function, points: list[Point], again: list[Point]) -> bool:
    """Tell whether a function clears gradients in front of its first backward, whenever it runs, and behind the loop that ends."""
    graph, paths = graph_of(unit.project, function), feasible(unit.project, function)
    trains = training(unit, function, graph)
    cleared = [*clearing(unit.project).points(function), *again]
    return function.node is not None and not leads(paths, [*points, graph.entry], trains, cleared)


def _asked_again(unit: Unit, function: Function, limit: Fork) -> list[Point]:
    """Return where gradients are cleared by a test that holds where a window was cut, as one that counts or asks for several."""
    found = clearing(unit.project)
    tree, sizes = function.module.tree, counted_by(unit, function, limit)
    tests = {
        up
        for node in found.nodes(function)
        for up in tree.ancestors(node)
        if is_fork(up) and up is not limit
        if waits_to_count(unit, function, up) or asks_for_several(question(up), sizes)
    }
    return [point for test in tests for point in points_of(unit.project, function, _asks(test))]


def _asks(test: ast.AST) -> ast.expr:
    assert is_fork(test)
    return evaluated(test)
