"""What binds a name last before it is read."""

from __future__ import annotations

import ast

from amp_migrate.flow import Kind
from tests.flow.helpers import graph_of

_WAYS = """
x = a()
while b():
    if c():
        x = d()
    elif e():
        continue
    try:
        use(x)
        y = f()
    except Error:
        x += 1
    finally:
        use(x, y)
    for x in x:
        if g(): break
        y = x
    else:
        del y
use(x, y)
"""


def test_the_same_points_as_by_every_step_back() -> None:
    """Points that bind nothing are passed over, whatever leads to them."""
    graph = graph_of(_WAYS)
    for name in (node for node in ast.walk(graph.root) if isinstance(node, ast.Name)):
        stores = {
            point
            for node in ast.walk(graph.root)
            if isinstance(node, ast.Name) and node.id == name.id
            for point in graph.at(node, Kind.STORE)
        }
        stops = {*stores, graph.entry}
        assert graph.bound_before(name) == graph.nearest_before(name, stops.__contains__)


def test_code_without_branches_is_passed_over_at_once() -> None:
    """However far above a name is bound, and however often it is read."""
    graph = graph_of("x = a()\n" + "use(x)\n" * 200)
    reads = graph.points[5:-3]
    before = [graph._passing[point.index] for point in reads]
    assert {point.kind for points in before for point in points} == {Kind.STORE}
    assert all(len(points) == 1 for points in before)
