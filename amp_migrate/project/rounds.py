"""What runs before what in a function, on its control-flow graph, in one round of the loops around both."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from amp_migrate.facts.paths import defs, uses
from amp_migrate.flow import Graph, Graphs, Paths, Point, Way, leads, steady
from amp_migrate.project import Function, Project
from amp_migrate.project.once import kept, once
from amp_migrate.project.order import inside, levels
from amp_migrate.project.reach import leading_to

Node = TypeVar("Node", bound=ast.AST)


@once
def graphs(project: Project) -> Graphs:
    """Return the control-flow graphs of the functions of a project, each built when it is first asked for."""
    return Graphs()


def graph_of(project: Project, function: Function) -> Graph:
    """Return the control-flow graph of a function."""
    return graphs(project).of(function.scope)


def points_of(project: Project, function: Function, node: ast.AST) -> tuple[Point, ...]:
    """Return when a node runs: for a `with` when it opens, for what runs later when that is made.

    In a `finally`, where nothing has gone wrong, as far as that is possible.
    """
    graph = graph_of(project, function)
    part: ast.AST | None = node.items[0].context_expr if isinstance(node, ast.With) else node
    while part is not None and part is not function.scope:
        if points := graph.within(part):
            return tuple(p for p in points if p.way is not Way.RAISE) or points
        part = function.module.tree.parent(part)
    return ()


def points_of_all(project: Project, function: Function, nodes: Iterable[ast.AST]) -> list[Point]:
    """Return when any of some nodes runs."""
    return [point for node in nodes for point in points_of(project, function, node)]


def steadily(project: Project, function: Function) -> Paths:
    """Return the ways through a function on which a test comes out the same until the function writes what it reads."""
    graph = graph_of(project, function)
    make = partial(Paths, graph, changes=steady, exceptions=False)
    return kept(project, (steadily, function), make)


def runs_before(
    project: Project,
    function: Function,
    first: ast.AST,
    then: ast.AST,
    between: Iterable[ast.AST] = (),
    *,
    exceptions: bool = False,
) -> bool:
    """Tell whether a node may run before another starts, in one round of the loops around both.

    Nothing of `between` runs on the way. With `exceptions`, whatever may raise may also lead to a handler.
    """
    starts = points_of(project, function, first)
    goals = points_of(project, function, then)[:1]
    avoided = points_of_all(project, function, between)
    order = graph_of(project, function).order(exceptions)
    return any(order.leads_in_round(starts, goal, avoided) for goal in goals)


def may_follow(
    project: Project,
    function: Function,
    first: ast.AST,
    then: ast.AST,
    between: Iterable[ast.AST] = (),
    *,
    exceptions: bool = False,
) -> bool:
    """Tell whether a node may run after another one, in whatever round, with nothing of `between` on the way."""
    starts, goals = (points_of(project, function, node) for node in (first, then))
    return _leads(project, function, starts, goals[:1], between, exceptions=exceptions)


def may_start(
    project: Project, function: Function, then: ast.AST, between: Iterable[ast.AST]
) -> bool:
    """Tell whether a function may come to a node from where it starts, with nothing of `between` on the way."""
    goals = points_of(project, function, then)[:1]
    return _leads(project, function, [graph_of(project, function).entry], goals, between)


def may_end(
    project: Project, function: Function, first: ast.AST, between: Iterable[ast.AST]
) -> bool:
    """Tell whether a function may return after a node has run, with nothing of `between` on the way."""
    starts = points_of(project, function, first)
    return _leads(project, function, starts, [graph_of(project, function).exit], between)


def may_pass(project: Project, function: Function, nodes: Iterable[ast.AST]) -> bool:
    """Tell whether a function may return and come to none of some nodes."""
    graph = graph_of(project, function)
    return _leads(project, function, [graph.entry], [graph.exit], nodes)


def _leads(
    project: Project,
    function: Function,
    starts: Iterable[Point],
    goals: Iterable[Point],
    between: Iterable[ast.AST],
    *,
    exceptions: bool = False,
) -> bool:
    order = graph_of(project, function).order(exceptions)
    return leads(order, starts, goals, points_of_all(project, function, between))


def last_before(
    project: Project, function: Function, nodes: Iterable[Node], then: ast.AST
) -> list[Node]:
    """Return those of some nodes that may run before another one in its round, none of the others between."""
    nodes = list(nodes)
    return [
        node
        for node in nodes
        if runs_before(project, function, node, then, [n for n in nodes if n is not node])
    ]


def rebound(
    project: Project, function: Function, node: ast.AST, first: ast.AST, then: ast.AST
) -> bool:
    """Tell whether a statement that may run between two nodes assigns what an expression reads."""
    read = uses(node)
    return any(
        runs_before(project, function, first, stmt) and runs_before(project, function, stmt, then)
        for stmt in function.own_nodes
        if isinstance(stmt, ast.stmt) and defs(stmt) & read
    )


def may_skip(project: Project, function: Function, jump: ast.stmt, node: ast.AST) -> bool:
    """Tell whether a jump leaves out a node that may come after it: what decides about the jump may run before."""
    tree = function.module.tree
    apart = [level for level in levels(tree, jump) if not inside(tree, node, level)]
    return bool(apart) and runs_before(project, function, apart[-1], node)


def may_run_behind(
    project: Project, first: tuple[Function, ast.AST], then: tuple[Function, ast.AST]
) -> bool:
    """Tell whether a node of a function may run after one of the same function or another, in one run of a program.

    What runs the second without the first in sight may have run that before.
    """
    firsts, thens = (list(leading_to(project, place)) for place in (first, then))
    coming = {function for function, _ in firsts}
    if any(not project.callers(function) and function not in coming for function, _ in thens):
        return True
    return any(
        may_follow(project, function, one, other)
        for function, other in thens
        for where, one in firsts
        if where is function and one is not other
    )
