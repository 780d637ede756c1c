"""Whether every path binds the name of a GradScaler before it reads it, with AMP on or off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.paths import Paths
from amp_migrate.flow.terms import Operand
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.memory import Memory
from amp_migrate.protocol.program import Program


def unbound(program: Program, memory: Memory) -> Iterator[Fault]:
    """Yield a fault for every name of a GradScaler that some path of its function reads before it is made."""
    for function in sorted(program.relevant, key=lambda f: (f.module.path, f.qualname)):
        graph = program.graph(function)
        for name in sorted(scalers_bound(program, function, graph)):
            load = read_early(function, graph, name, memory)
            if load is not None:
                place = Place(function.module.path, load.line)
                yield Fault(Breach.UNBOUND, place, (place,))


def scalers_bound(program: Program, function: Function, graph: Graph) -> set[str]:
    """Return the names that a function binds to GradScalers."""
    found = set()
    for point in graph.points:
        if (
            point.kind is Kind.STORE
            and isinstance(point.node, ast.Name)
            and point.value is not None
        ):
            if function.module.scopes.owner(point.node) is function.scope:
                if program.training.objects.scaler(function.module, point.value) is not None:
                    found.add(point.node.id)
    return found


def read_early(function: Function, graph: Graph, name: str, memory: Memory) -> Point | None:
    """Return the first read of a name that some path reaches before it is bound."""
    if any(isinstance(b, ast.arg) for b in function.module.scopes.bindings(function.scope, name)):
        return None
    stores = [p for p in graph.points if p.kind is Kind.STORE and _is(p, name)]
    loads = [p for p in graph.points if p.kind is Kind.LOAD and _is(p, name)]

    def changes(point: Point, operand: Operand) -> bool:
        return memory.may_change(point, operand)

    paths = Paths(graph, changes=changes, exceptions=False)
    for load in loads:
        if not paths.must_pass(graph.entry, load, stores):
            return load
    return None


def _is(point: Point, name: str) -> bool:
    return isinstance(point.node, ast.Name) and point.node.id == name
