"""Whether gradients and their copies for master weights are the same all the time, so that one of them can do without the other."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amp_migrate.facts.paths import path, same
from amp_migrate.flow import Graph, Graphs, Kind, Point, leads, leads_over
from amp_migrate.older.feasible import feasible
from amp_migrate.older.found import Found
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import reachable

if TYPE_CHECKING:
    from amp_migrate.older.fp16.masters import Masters


def refuse_apart(training: Masters, found: Found) -> None:
    """Refuse gradients that are cleared while their copies wait for the step, or before they are copied."""
    graphs = Graphs()
    for module, call, name in training.copies:
        if name != "model_grads_to_master_grads":
            continue
        function = found.project.function_of(module, call)
        graph = graphs.of(function.scope)
        order = feasible(found, graph)
        calls = {
            method: [
                point
                for where, other in found.method_calls(method)
                if where is module and found.project.function_of(where, other) is function
                for point in graph.at(other, Kind.CALL)
            ]
            for method in ("backward", "zero_grad", "step")
        }
        calls["zero_grad"] += _may_clear(found, graph)
        _refuse_gradients(training, function)
        copied = list(graph.at(call, Kind.CALL))
        if not calls["backward"] or not calls["step"]:
            raise Unwritable(
                module,
                call,
                "the backward pass and the step are not in the function that copies the gradients",
                "put them into one function, then run again",
            )
        cleared = [point for point in calls["zero_grad"] if _clears(training, found, module, point)]
        if leads(order, copied, calls["backward"], cleared):
            raise Unwritable(
                module,
                call,
                "gradients of the network may live on behind the step, and what is done to the masters' is not done to them",
                "clear those of the network in front of the backward pass, then run again",
            )
        if leads_over(order, calls["backward"], calls["zero_grad"], copied, copied):
            raise _cleared(module, call, function)
        if leads_over(order, copied, calls["zero_grad"], calls["step"], calls["backward"]):
            raise _cleared(module, call, function)


def _may_clear(found: Found, graph: Graph) -> list[Point]:
    """Return the calls of a body that may run something which clears or sets gradients."""
    return [
        point
        for point in graph.points
        if point.kind is Kind.CALL and isinstance(point.node, ast.Call)
        for callee in found.project.callees(point.node)
        if any(
            isinstance(node, ast.Attribute) and node.attr in ("zero_grad", "grad")
            for run in reachable(found.project, callee)
            for node in run.all_nodes
        )
    ]


def _refuse_gradients(training: Masters, function: Function) -> None:
    """Refuse a look at gradients, or a change of them, that are not those of the masters."""
    tree = function.module.tree
    named_so = {
        path(call.args[1])
        for module, call, _ in training.copies
        if module is function.module and len(call.args) > 1
    }
    for node in tree.attributes("grad"):
        if tree.scope(node) is not function.scope:
            continue
        loops = [up for up in tree.ancestors(node) if isinstance(up, ast.For)]
        comprehensions = [
            part
            for up in tree.ancestors(node)
            if isinstance(up, ast.GeneratorExp | ast.ListComp)
            for part in up.generators
        ]
        over = [(loop.target, loop.iter) for loop in loops] + [
            (c.target, c.iter) for c in comprehensions
        ]
        if not any(same(t, node.value) and path(i) in named_so for t, i in over):
            raise Unwritable(
                function.module,
                node,
                "these gradients are not known to be those of the masters alone",
                "go over the masters in a loop, `for p in master_params:`, then run again",
            )


def _clears(training: Masters, found: Found, module: Module, point: Point) -> bool:
    """Tell whether a call clears the gradients of the network."""
    func = point.node.func if isinstance(point.node, ast.Call) else None
    return isinstance(func, ast.Attribute) and bool(
        found.groups(module, func.value) & training.networks
    )


def _cleared(module: Module, call: ast.Call, function: Function) -> Unwritable:
    return Unwritable(
        module,
        call,
        f"{function.name}() clears gradients between the backward pass and the step, of which the masters have copies",
        "clear gradients behind the step, or in front of the backward pass, then run again",
    )
