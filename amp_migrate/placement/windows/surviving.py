"""Gradients that a way past a step keeps for the next backward, which adds to them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.flow import Graph, Kind, Point, leads
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.subject import Fork, evaluated, ways
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.order import in_branch
from amp_migrate.project.reach import calls_to, reachable
from amp_migrate.project.rounds import graph_of, points_of
from amp_migrate.protocol.code.turns import turns_of
from amp_migrate.training.bindings import generators, is_generator
from amp_migrate.training.origins.constants import settled
from amp_migrate.training.origins.switches import feasible
from amp_migrate.training.steps import Backward, Step


def survive(unit: Unit, function: Function, stepping: ast.AST, test: Fork) -> bool:
    """Tell whether gradients that `test` keeps from the step in it are there at the next backward.

    `stepping` is the step, or a call that steps. They are where nothing clears them on some way round: so for an
    accumulation boundary, and for a step left out whose gradients stay. Where not every caller is seen, they are too.
    """
    graph = graph_of(unit.project, function)
    start = graph.within(evaluated(test))
    if not start:
        return True
    avoided = list(graph.within(stepping))
    for branch in ways(test):
        if in_branch(function.module.tree, stepping, branch):
            avoided += [point for stmt in branch for point in graph.within(stmt)]
    return onward(unit, function, start[:1], avoided) is not None


def leaves(unit: Unit, step: Step) -> bool:
    """Tell whether a later backward may add to the gradients that a step took, as some way clears none."""
    here = points_of(unit.project, step.function, step.call)[-1:]
    return onward(unit, step.function, here, []) is not None


def stay(unit: Unit, backward: Backward) -> bool:
    """Tell whether a later backward may add to the gradients of one, which no step took and nothing cleared."""
    function = backward.function
    graph = graph_of(unit.project, function)
    stepping = [p for step in unit.steps_of(function) for p in graph.within(step.call)]
    begun = points_of(unit.project, function, backward.node)[-1:]
    return onward(unit, function, begun, stepping) is not None


def lost(unit: Unit, function: Function, node: ast.AST, calls: Iterable[ast.AST]) -> bool:
    """Tell whether a backward may run again without a step between, always behind what clears its gradients.

    `node` is the backward, or a call of a function that runs it; `calls` are those of the function that step.
    """
    graph = graph_of(unit.project, function)
    stepping = [point for call in calls for point in graph.within(call)]
    start = _behind(unit, function, graph, node, stepping)
    paths = feasible(unit.project, function)
    again = any(leads(paths, [point], [point], stepping) for point in start)
    if not again and leads(paths, start, [graph.exit], stepping):
        again = meets_again(unit, function, [graph.exit], frozenset({function}))
    anew = [p for p in training(unit, function, graph) if _clears_first(unit, p.node)]
    return again and onward(unit, function, start, [*stepping, *anew]) is None


def _behind(
    unit: Unit, function: Function, graph: Graph, node: ast.AST, stepping: list[Point]
) -> tuple[Point, ...]:
    """Return where a node is over: behind the loops over exactly one item, as over one callback, that step nowhere."""
    found = points_of(unit.project, function, node)[-1:]
    order = graph.order(exceptions=False)
    for loop in order.loops_of(found[0]) if found else ():
        once = turns_of(unit.project).once(function, loop.header.node)
        if not once or not loop.body.isdisjoint(stepping):
            break
        found = tuple(dict.fromkeys(edge.target for edge in loop.exits))
    return found


def _clears_first(unit: Unit, node: ast.AST) -> bool:
    """Tell whether a call runs backward passes, each always behind what clears their gradients."""
    callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
    found = [(f, training(unit, f, graph_of(unit.project, f))) for f in callees]
    return any(trains for _, trains in found) and all(
        graph_of(unit.project, f)
        .order(exceptions=False)
        .must_pass(graph_of(unit.project, f).entry, point, clearing(unit.project).points(f))
        for f, trains in found
        for point in trains
    )


def onward(
    unit: Unit,
    function: Function,
    starts: Iterable[Point],
    avoided: Iterable[Point],
    seen: frozenset[Function] = frozenset(),
) -> tuple[Point, ...] | None:
    """Return a way on which gradients there at some points of a function get to a backward uncleared.

    Where that backward is one of the callers' it is the way out of the function.
    """
    found = clearing(unit.project)
    graph = graph_of(unit.project, function)
    paths = feasible(unit.project, function)
    cleared = found.points(function)
    trains = training(unit, function, graph)
    avoided = list(avoided)
    kept = [*avoided, *cleared, *_entered(unit, function, graph, avoided)]
    starts = list(starts)
    for point in starts:
        for backward in trains:
            if way := paths.witness(point, backward, kept):
                return way
    ways = (paths.witness(point, graph.exit, kept) for point in starts)
    leaving = next((way for way in ways if way is not None), None)
    if leaving is None or function.node is None:
        return None
    if trains and not leads(paths, [graph.entry], trains, cleared):
        return None
    callers = unit.project.callers(function)
    returns = any(
        onward(
            unit,
            call.function,
            ending(unit.project, call, function),
            [],
            seen | {function, call.function},
        )
        for call in callers
        if call.function not in seen | {function}
    )
    return leaving if returns or not callers else None


def meets_again(
    unit: Unit, function: Function, starts: Iterable[Point], around: frozenset[Function]
) -> bool:
    """Tell whether a backward may run behind some points of a function, there or in what calls it in sight."""
    graph = graph_of(unit.project, function)
    paths = feasible(unit.project, function)
    trains = training(unit, function, graph)
    if any(paths.witness(start, backward) for start in starts for backward in trains):
        return True
    return any(
        meets_again(unit, call.function, ending(unit.project, call, function), around | {function})
        for call in unit.project.callers(function)
        if call.function not in around
    )


def _entered(unit: Unit, function: Function, graph: Graph, avoided: list[Point]) -> Iterator[Point]:
    """Yield where loops over exactly one item begin, as over one callback, whose turn comes past what is avoided."""
    order = graph.order(exceptions=False)
    for loop in order.loops if avoided else ():
        if loop.body.isdisjoint(avoided) or order.witness(loop.header, loop.header, avoided):
            continue
        if turns_of(unit.project).once(function, loop.header.node):
            yield loop.header


def ending(project: Project, site: CallSite, callee: Function) -> tuple[Point, ...]:
    """Return the moments at which what a call runs is over: where the block of a generator ends."""
    graph = graph_of(project, site.function)
    item = site.function.module.tree.parent(site.call)
    if isinstance(item, ast.withitem) and (is_generator(callee) or generators(project, site.call)):
        return graph.at(item, Kind.LEAVE)
    return graph.at(site.call, Kind.CALL)


def training(
    unit: Unit, function: Function, graph: Graph, around: tuple[Function, ...] = ()
) -> list[Point]:
    """Return the moments at which a function runs a backward, itself or in what it calls."""
    own = {b.node: b for b in unit.backwards_of(function)}
    running = {b.function for b in unit.backwards}
    points: list[Point] = []
    for node in own:
        points += points_of(unit.project, function, node)[-1:]
    for call in calls_to(unit.project, function, running):
        if call not in own and not leaves_out(unit, call):
            points += _moments(unit, function, graph, call, (*around, function))
    return points


def _moments(
    unit: Unit, function: Function, graph: Graph, call: ast.Call, around: tuple[Function, ...]
) -> list[Point]:
    """Return the moments at which a call runs backwards: of a generator that a block enters, when that begins or is over."""
    item = function.module.tree.parent(call)
    found: list[Point] = []
    if not isinstance(item, ast.withitem):
        return list(graph.at(call, Kind.CALL))
    for _, callee in generators(unit.project, call):
        if callee in around:
            continue
        inner = graph_of(unit.project, callee)
        order = inner.order(exceptions=False)
        yields = [point for point in inner.points if point.kind is Kind.YIELD]
        for point in training(unit, callee, inner, around):
            if leads(order, [inner.entry], [point], yields):
                found += graph.at(item, Kind.ENTER)
            if leads(order, yields, [point]):
                found += graph.at(item, Kind.LEAVE)
    return list(dict.fromkeys(found)) or list(graph.at(call, Kind.CALL))


def leaves_out(unit: Unit, node: ast.AST) -> bool:
    """Tell whether a call says by a constant that what it runs leaves out its backward: ``step(x, backward=False)``."""
    callees = unit.project.callees(node) if isinstance(node, ast.Call) else []
    running = {b.function for b in unit.backwards}
    for callee in callees:
        below = running & reachable(unit.project, callee)
        site = unit.project.site(node, callee) if isinstance(node, ast.Call) else None
        if below and (below != {callee} or site is None):
            return False
        known = settled(unit.project, site, callee) if site is not None else NOTHING
        if not all(_is_refuted(b, known) for b in unit.backwards_of(callee)) and site is not None:
            return False
    return True


def _is_refuted(backward: Backward, known: Assumption) -> bool:
    """Tell whether a test around a backward comes out otherwise."""
    sides = backward.module.tree.sides(backward.node)
    return any(evaluate(up.test, known) is (not holds) for up, holds in sides)
