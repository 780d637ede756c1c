"""The ways through a function on which its flags do not change."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.flow import Graph, Paths, cautious, keeping
from amp_migrate.older.found import Found
from amp_migrate.project.reach import where_set


def feasible(found: Found, graph: Graph) -> Paths:
    """Return the ways through a body on which a test of an attribute that nothing sets comes out the same."""
    return Paths(graph, changes=keeping(cautious(graph), _settled(found, graph)), exceptions=False)


def _settled(found: Found, graph: Graph) -> set[str]:
    """Return the attributes that tests of a body read and that nothing in the project sets, as ``args.fp16``."""
    asked = {
        node
        for point in graph.points
        for edge in graph.order(False).edges[point.index]
        if edge.test is not None
        for node in ast.walk(edge.test)
        if isinstance(node, ast.Attribute)
    }
    return {
        text for node in asked if not where_set(found.project, node.attr) and (text := path(node))
    }
