"""What becomes of the micro-batches of a window that the end of their loop cuts short."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.mark import Mark
from amp_migrate.flow import Point
from amp_migrate.flow.cfg.subject import Fork, evaluated, is_fork
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.windows.counting import waits_to_count
from amp_migrate.placement.windows.surviving import meets_again, onward
from amp_migrate.project import Function
from amp_migrate.project.rounds import graph_of, points_of


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
        if onward(unit, where, points, _asked_again(unit, where, limit)) is not None:
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


def _asked_again(unit: Unit, function: Function, limit: Fork) -> list[Point]:
    """Return where gradients are cleared by a further test that counts, as where the last window is short."""
    found = clearing(unit.project)
    tree = function.module.tree
    tests = {
        up
        for node in found.nodes(function)
        for up in tree.ancestors(node)
        if is_fork(up) and up is not limit and waits_to_count(unit, function, up)
    }
    return [point for test in tests for point in points_of(unit.project, function, _asks(test))]


def _asks(test: ast.AST) -> ast.expr:
    assert is_fork(test)
    return evaluated(test)
