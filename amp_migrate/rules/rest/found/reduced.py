"""The switch of Apex's DistributedDataParallel: `disable_allreduce` and `enable_allreduce`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow import Graph, Kind, Point, build, leads_over
from amp_migrate.plan.model import Decision, Replace, Status
from amp_migrate.project import Module
from amp_migrate.rules.base import FileContext, Rule, decision

_SWITCHES = {"disable_allreduce": "False", "enable_allreduce": "True"}
_FLAG = "require_backward_grad_sync"
_ADVICE = "delete both, and run the forward and backward passes between them under `with model.no_sync():`"


def switched(
    rule: Rule, context: FileContext, wrapped: list[tuple[Module, ast.expr]]
) -> Iterator[Decision]:
    """Let the flag of torch's wrapper do what methods of Apex's did, for the networks that a file wraps.

    Apex asked its switch in the backward pass too, torch asks in the forward pass alone.
    """
    found = [
        (module, call)
        for module in context.project.modules.values()
        if "_allreduce(" in module.tree.text
        for call in module.tree.nodes(ast.Call)
        if call not in context.taken and _is_switch(context, module, call, wrapped)
    ]
    context.taken.update(call for _, call in found)
    reasons = {call: _obstacle(context, module, call) for module, call in found}
    worst = next((reason for reason in reasons.values() if reason is not None), None)
    for module, call in found:
        reason = reasons[call] or (f"used beside one that is {worst}" if worst else None)
        yield _decided(rule, module, call, reason)


def _is_switch(
    context: FileContext, module: Module, call: ast.Call, wrapped: list[tuple[Module, ast.expr]]
) -> bool:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _SWITCHES:
        return False
    if module is context.module:
        return True
    held = context.project.values.lineage(module, func.value)
    return any(held & context.project.values.groups(where, node) for where, node in wrapped)


def _decided(rule: Rule, module: Module, call: ast.Call, reason: str | None) -> Decision:
    tree, func = module.tree, call.func
    assert isinstance(func, ast.Attribute)
    if reason is not None:
        message = (
            f"{func.attr} is a method of Apex's DistributedDataParallel alone, and it is {reason}"
        )
        return decision(rule, Status.LEFT, module, call, message, advice=_ADVICE)
    text = f"{tree.segment(func.value)}.{_FLAG} = {_SWITCHES[func.attr]}"
    edit = Replace(tree.span(tree.statement(call)), text)
    return decision(rule, Status.MIGRATED, module, call, f"becomes `{text}`", [edit])


def _obstacle(context: FileContext, module: Module, call: ast.Call) -> str | None:
    """Tell why a switch cannot be set where the passes of a network ask for it; None where it can."""
    statement = module.tree.statement(call)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return "part of another statement"
    function = context.project.function_of(module, call)
    assert isinstance(call.func, ast.Attribute)
    network = context.project.values.lineage(module, call.func.value)
    graph = build(function.scope)
    forwards = [
        point
        for other in module.tree.nodes(ast.Call)
        if context.project.function_of(module, other) is function
        and context.project.values.lineage(module, other.func) & network
        for point in graph.at(other, Kind.CALL)
    ]
    if not forwards:
        return "not called in the function that runs the network"
    if _is_between(graph, forwards, graph.at(call, Kind.CALL)):
        return "called between a forward pass and its backward pass"
    return None


def _is_between(graph: Graph, forwards: list[Point], switches: tuple[Point, ...]) -> bool:
    """Tell whether some way leads from a forward pass to a switch and on to a backward pass, with no other between."""
    order = graph.order(False)
    backwards = [
        point
        for point in graph.points
        if point.kind is Kind.CALL
        and isinstance(point.node, ast.Call)
        and isinstance(point.node.func, ast.Attribute)
        and point.node.func.attr == "backward"
    ]
    if not backwards:
        return True
    return leads_over(order, forwards, switches, backwards)
