"""From the `ast` of one body to its control-flow graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import arguments_of, variables
from amp_migrate.flow.cfg.blocks import Blocks, Swallows
from amp_migrate.flow.cfg.graph import Graph, Root
from amp_migrate.flow.cfg.points import Edge
from amp_migrate.flow.cfg.sketch import Sketch


def any_context(_: ast.expr) -> bool:
    """Take every context manager for one that may stop an exception."""
    return True


def build(root: Root, swallows: Swallows = any_context, at_once: bool = False) -> Graph:
    """Return the control-flow graph of a body.

    `root` is a function, lambda, class, module or generator expression; what is defined inside it is a point,
    and its body has a graph of its own. With `at_once`, generator expressions loop where they stand, as
    comprehensions do. Raises `TypeError` for any other node.
    """
    sketch = Sketch(root, _sure_names(root))
    blocks = Blocks(sketch, swallows, at_once)
    if isinstance(root, ast.Lambda):
        blocks.value(root.body)
    elif isinstance(root, ast.GeneratorExp):
        blocks.turns(root, root.generators)
    elif isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
        blocks.block(root.body)
    else:
        raise TypeError(f"no body: {type(root).__name__}")
    leaving, raised = sketch.close(root)
    points = tuple(sketch.points)
    edges = tuple(
        tuple(Edge(points[source], points[target], kind, test) for target, kind, test in out)
        for source, out in enumerate(sketch.edges)
    )
    return Graph(root, points, edges, points[0], points[leaving], points[raised])


def _sure_names(root: Root) -> frozenset[str]:
    """The parameters of a function that nothing in it unbinds."""
    if not isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return frozenset()
    given = root.args
    parameters = {a.arg for a in arguments_of(given)}
    parameters |= {a.arg for a in (given.vararg, given.kwarg) if a is not None}
    for node in _statements(root):
        if isinstance(node, ast.Delete):
            names = variables(node)
            parameters -= names
        elif isinstance(node, ast.ExceptHandler) and node.name is not None:
            parameters.discard(node.name)
    return frozenset(parameters)


def _statements(root: ast.AST) -> Iterator[ast.AST]:
    """The statements in a body, those of nested bodies included, with handlers and cases; no expressions."""
    stack = [root]
    while stack:
        node = stack.pop()
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, ())
            if isinstance(inner, list):
                stack += inner
        yield node


class Graphs:
    """The graphs of many bodies, each built when it is first asked for.

    Keeps the nodes it was asked about alive.
    """

    def __init__(self, swallows: Swallows = any_context, at_once: bool = False) -> None:
        self._swallows = swallows
        self._at_once = at_once
        self._built: dict[Root, Graph] = {}

    def of(self, root: Root) -> Graph:
        """Return the graph of a body; the same object for the same node."""
        found = self._built.get(root)
        if found is None:
            found = self._built[root] = build(root, self._swallows, self._at_once)
        return found
