"""Optimizers that are unscaled by a name which holds none on some path."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import root
from amp_migrate.flow.cfg.points import Point
from amp_migrate.flow.paths import Paths
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Breach, Fault, Place
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.training.events import Kind


def emptied(program: Program, memory: Memory) -> Iterator[Fault]:
    """Yield every `unscale_` that some path leads to from where its name was given None, and that gets an optimizer only behind it."""
    for function, happening in program.training.by_function.items():
        for node, events in happening.items():
            given = [e.named() for e in events if e.kind is Kind.UNSCALE]
            for name in filter(None, (root(each) for each in given if each is not None)):
                for way in _ways(program, memory, function, node, name):
                    places = tuple(Place(function.module.path, point.line) for point in way)
                    yield Fault(Breach.EMPTIED, places[-1], places)


def _ways(
    program: Program, memory: Memory, function: Function, node: ast.AST, name: str
) -> Iterator[tuple[Point, Point]]:
    """Yield from where a name of a function is None, with the node that it is so at."""
    graph = program.graph(function)
    stores = graph.stores(name)
    empty = [p for p in stores if isinstance(p.value, ast.Constant) and p.value.value is None]
    if not empty or not _is_of_its_own(function, name, stores):
        return
    order = graph.order(exceptions=False)
    paths = Paths(graph, changes=memory.may_change, exceptions=False)
    for point in graph.at(node):
        others = (p for p in stores if p not in empty)
        if any(not order.must_pass(point, other, empty) for other in others):
            for at in empty:
                if not paths.must_pass(at, point, stores):
                    yield at, point


def _is_of_its_own(function: Function, name: str, stores: list[Point]) -> bool:
    """Tell whether no other function binds a name of this one, which nothing hands to it."""
    own = {point.node for point in stores}
    return own.issuperset(function.module.scopes.bindings(function.scope, name))
