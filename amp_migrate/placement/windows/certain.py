"""Whether a backward has always run where gradients are read, in the same round, or some rounds train nothing."""

from __future__ import annotations

import ast

from amp_migrate.flow import Graph, Kind, Point, leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.windows.surviving import training
from amp_migrate.project import Function
from amp_migrate.project.rounds import graph_of, points_of, steadily
from amp_migrate.training.bindings import is_generator


def may_be_untrained(unit: Unit, function: Function, node: ast.AST) -> bool:
    """Tell whether a node of a function may run, for the first time or again, with no backward before it in its round.

    Loops that train run at least once. What trains must do so whichever way it is gone through.
    """
    graph = graph_of(unit.project, function)
    here = points_of(unit.project, function, node)[-1:]
    sure = _sure(unit, function, graph, (function,))
    sure += [
        loop.header
        for loop in graph.order(exceptions=False).loops
        if not loop.body.intersection(here) and not loop.body.isdisjoint(sure)
    ]
    return leads(steadily(unit.project, function), [graph.entry, *here], here, sure)


def _sure(
    unit: Unit, function: Function, graph: Graph, around: tuple[Function, ...]
) -> list[Point]:
    """Return the moments at which a backward runs for certain, itself or in whatever a call runs."""
    own = {
        p for b in unit.backwards_of(function) for p in points_of(unit.project, function, b.node)
    }
    found: list[Point] = []
    for point in training(unit, function, graph):
        if point in own:
            found.append(point)
        elif _always(unit, point.node, around):
            found += [point, *_rounds(function, graph, point.node)]
    return found


def _rounds(function: Function, graph: Graph, node: ast.AST) -> list[Point]:
    """Return where a loop takes the next item of what a call gives."""
    loops = [up for up in function.module.tree.ancestors(node) if isinstance(up, ast.For)]
    return [
        point
        for loop in loops
        if any(part is node for part in ast.walk(loop.iter))
        for point in graph.at(loop, Kind.NEXT)
    ]


def _always(unit: Unit, node: ast.AST, around: tuple[Function, ...]) -> bool:
    """Tell whether what a call runs always comes to a backward: a generator before each item that it gives."""
    entered = isinstance(node, ast.withitem)
    call = node.context_expr if isinstance(node, ast.withitem) else node
    callees = unit.project.callees(call) if isinstance(call, ast.Call) else []
    return bool(callees) and all(
        callee not in around and _is_always(unit, callee, (*around, callee), entered)
        for callee in callees
    )


def _is_always(unit: Unit, function: Function, around: tuple[Function, ...], entered: bool) -> bool:
    graph = graph_of(unit.project, function)
    sure, ways = _sure(unit, function, graph, around), steadily(unit.project, function)
    if entered or not is_generator(function):
        return not leads(ways, [graph.entry], [graph.exit], sure)
    given = [point for point in graph.points if point.kind is Kind.YIELD]
    return not leads(ways, [graph.entry, *given], given, sure)
