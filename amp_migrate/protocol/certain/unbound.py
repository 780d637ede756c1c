"""Names of GradScalers that are read where nothing but the tests of their creation decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path
from amp_migrate.flow import Edge, Order
from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.flow.paths import Paths
from amp_migrate.flow.terms import Term, term
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.run.memory import Memory


def unbound(program: Program, memory: Memory) -> Iterator[tuple[Function, ast.AST, ast.AST]]:
    """Yield the first read of every name of a GradScaler that some path does not make, and where one makes it.

    A read under a test of its own may be under one that comes out as that of the creation does.
    """
    for function in sorted(program.relevant, key=lambda f: (f.module.path, f.qualname)):
        graph = program.graph(function)
        for name in sorted(_scalers_bound(program, function, graph)):
            load = _read_early(function, graph, name, memory)
            if load is not None and _is_plain(graph, name, load):
                yield function, load.node, graph.stores(name)[0].node


def _scalers_bound(program: Program, function: Function, graph: Graph) -> set[str]:
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


def _read_early(function: Function, graph: Graph, name: str, memory: Memory) -> Point | None:
    """Return the first read of a name that some path reaches before it is bound."""
    if any(isinstance(b, ast.arg) for b in function.module.scopes.bindings(function.scope, name)):
        return None
    stores = graph.stores(name)
    paths = Paths(graph, changes=memory.may_change, exceptions=False)
    for load in graph.points:
        if load.kind is Kind.LOAD and path(load.node) == name:
            if not paths.must_pass(graph.entry, load, stores):
                return load
    return None


def _is_plain(graph: Graph, name: str, load: Point) -> bool:
    """Tell whether a read is under some, but not all, of the tests of every creation, and under no other."""
    read = _tests(graph, load)
    return all(read < _tests(graph, made) for made in graph.stores(name))


def _tests(graph: Graph, at: Point) -> set[tuple[Term | ast.expr, bool | None]]:
    """Return the tests on the ways to a point that lead past it where they come out otherwise, with how they come out."""
    order = graph.order(False)
    found: set[tuple[Term | ast.expr, bool | None]] = set()
    for point in graph.points:
        tested = [edge for edge in order.edges[point.index] if edge.test is not None]
        if len(tested) > 1 and not order.dominates(at, point):
            leading = [e for e in tested if _leads(order, e, at)]
            if len(leading) < len(tested):
                found |= {(term(e.test) or e.test, e.truth) for e in leading if e.test is not None}
    return found


def _leads(order: Order, edge: Edge, at: Point) -> bool:
    return edge.target is at or order.witness(edge.target, at, [edge.source]) is not None
