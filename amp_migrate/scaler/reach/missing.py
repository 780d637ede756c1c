"""Objects that hold the scaler, and that a function asks whether they are there at all."""

from __future__ import annotations

import ast
from functools import cache, partial

from amp_migrate.facts.paths import path, prefixes
from amp_migrate.flow import NOTHING, Operand, Paths, Point, evaluate, refine, steady
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Project
from amp_migrate.project.once import kept
from amp_migrate.project.reach import attributes_set
from amp_migrate.project.rounds import graph_of, points_of


def refuse_missing(project: Project, function: Function, node: ast.AST, text: str) -> None:
    """Raise `Cannot` where the object that holds the scaler may be None: its function asks, and a way leads on to the node."""
    holder = text.rpartition(".")[0]
    if holder and may_be_missing(project, function, node, holder):
        raise Cannot(
            "AMP901",
            *function.at(node),
            f"this needs the GradScaler of `{holder}`, which may be None here",
            f"ask for `{holder}` above this line and leave where it is None, then run again",
        )


def _is_asked(function: Function, holder: str) -> bool:
    """Tell whether a function reads an object other than for what that holds."""
    tree = function.module.tree
    read = (n for n in function.own_nodes if isinstance(n, ast.expr) and path(n) == holder)
    return any(
        isinstance(n.ctx, ast.Load) and not isinstance(tree.parent(n), ast.Attribute)
        for n in read
        if isinstance(n, ast.Name | ast.Attribute)
    )


def may_be_missing(project: Project, function: Function, node: ast.AST, holder: str) -> bool:
    """Tell whether a function asks if an object is there, and comes to a node without it as well."""
    return _is_asked(function, holder) and _may_lack(project, function, node, holder)


def _may_lack(project: Project, function: Function, node: ast.AST, holder: str) -> bool:
    """Tell whether a function that asks for an object may come to a node without, before anything makes it."""
    gone = kept(
        project, (_may_lack, function, holder), partial(_without, project, function, holder)
    )
    if gone is None:
        return False
    lacking = _is_none(holder)
    points = points_of(project, function, node)
    return any(evaluate(lacking, facts) is True for p in points for facts in gone.states(p))


def _is_none(holder: str) -> ast.expr:
    return ast.parse(f"{holder} is None", mode="eval").body


def _without(project: Project, function: Function, holder: str) -> Paths | None:
    """Return the paths of a function where an object is not there; None where those are all of its paths.

    A method of its owner that is out of sight makes it where it runs for nothing else.
    """
    graph = graph_of(project, function)
    lacking = _is_none(holder)
    there = Paths(
        graph, refine(NOTHING, lacking, False) or NOTHING, changes=steady, exceptions=False
    )
    owners = {*prefixes(holder)} - {holder}

    @cache
    def makes_one(point: Point) -> bool:
        call = point.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return False
        if path(call.func.value) not in owners:
            return False
        callees = project.callees(call)
        if not callees:
            return not there.reachable(point)
        return any(holder.rpartition(".")[2] in attributes_set(project, f) for f in callees)

    def makes(point: Point, _: Operand) -> bool:
        return makes_one(point)

    gone = Paths(graph, refine(NOTHING, lacking, True) or NOTHING, changes=makes, exceptions=False)
    return None if gone.order.edges == there.order.edges else gone
