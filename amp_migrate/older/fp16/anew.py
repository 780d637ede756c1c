"""Networks in fp16 that are made anew, and that no optimizer trains: cast where they run, whatever trained before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.below import every
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.older.found import Found
from amp_migrate.project import Module
from amp_migrate.project.rounds import graphs
from amp_migrate.training.gradients.handed_out import bases


def made_anew(found: Found, module: Module, node: ast.expr) -> bool:
    """Tell whether a variable holds another network than those of its name that wrapped optimizers train."""
    if not isinstance(node, ast.Name):
        return False
    function = found.project.function_of(module, node)
    if module.scopes.owner(node) is not function.scope:
        return False
    graph = graphs(found.project).of(function.scope)
    trained = [
        base
        for optimizer in _wrapped(found, module)
        for call in found.made_here(module, optimizer)
        for base in bases(module, call, set())
        if isinstance(base, ast.Name) and base.id == node.id
        if module.scopes.owner(base) is function.scope
    ]
    own, others = _held(graph, node), {point for base in trained for point in _held(graph, base)}
    known = bool(own) and not any(point.kind is Kind.ENTRY for point in own)
    return known and bool(others) and own.isdisjoint(others)


def _wrapped(found: Found, module: Module) -> Iterator[ast.expr]:
    """Yield what a file gives FP16_Optimizer to wrap."""
    for where, node, _ in found.wrappers():
        call = module.tree.call_of(node) if where is module else None
        if call is not None:
            yield from call.args[:1]
            yield from (k.value for k in call.keywords if k.arg == "init_optimizer")


def _held(graph: Graph, name: ast.Name) -> set[Point]:
    """Return the points that bound a variable to what it holds where it is read, or to what that was made of."""
    found: set[Point] = set()
    queue = [name]
    for read in queue:
        fresh = set(graph.bound_before(read)) - found
        found |= fresh
        queue += (
            part
            for point in fresh
            if point.value is not None
            for part in every(point.value)
            if isinstance(part, ast.Name) and part.id == name.id
        )
    return found
