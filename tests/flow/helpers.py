"""Small graphs by their text."""

from __future__ import annotations

import ast
import textwrap

from amp_migrate.flow import Graph, Kind, Point, build


def graph_of(text: str) -> Graph:
    """Return the graph of the body that a text defines first, or of the whole text where that is no function."""
    module = ast.parse(textwrap.dedent(text))
    first = module.body[0]
    return build(first if isinstance(first, ast.FunctionDef | ast.AsyncFunctionDef) else module)


def calls(graph: Graph, name: str) -> tuple[Point, ...]:
    """Return the reachable points that call a name."""
    return tuple(
        point
        for point in graph.points
        if point.kind is Kind.CALL
        and isinstance(point.node, ast.Call)
        and isinstance(point.node.func, ast.Name)
        and point.node.func.id == name
        and graph.order().reachable(point)
    )


def call(graph: Graph, name: str) -> Point:
    """Return the only reachable point that calls a name."""
    (point,) = calls(graph, name)
    return point


def straight(text: str) -> list[str]:
    """Return what runs in a body without branches, as kind and source, in order."""
    graph = graph_of(text)
    path = graph.order(exceptions=False).witness(graph.entry, graph.exit)
    assert path is not None
    return [f"{p.kind.value} {_source(p.node)}" for p in path[1:-1]]


def _source(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0]
