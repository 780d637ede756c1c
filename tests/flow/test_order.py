"""Dominators, reach, witnesses and loops, by hand."""

from __future__ import annotations

import ast
import random

from amp_migrate.flow import Edge, EdgeKind, Kind, Order, Point, Way
from amp_migrate.flow.dominance import immediate_dominators
from tests.flow.helpers import call, graph_of

TRAINING = """
def train(loader):
    for epoch in range(9):
        for i, batch in enumerate(loader):
            loss(batch)
            backward()
            if (i + 1) % 4 == 0:
                clip()
                step()
                zero()
        test()
"""


def order_of(edges: dict[int, list[int]], count: int, ends: list[int]) -> Order:
    """Return the order of a graph of plain points, from point 0."""
    node = ast.Pass()
    points = [Point(i, Kind.STEP, node, None, Way.NORMAL) for i in range(count)]
    out = [
        tuple(Edge(points[i], points[j], EdgeKind.NEXT) for j in edges.get(i, ()))
        for i in range(count)
    ]
    return Order(points, out, points[0], [points[i] for i in ends])


def test_between() -> None:
    graph = graph_of(TRAINING)
    order = graph.order(exceptions=False)
    backward, clip, step, zero, loss, test = (
        call(graph, n) for n in ("backward", "clip", "step", "zero", "loss", "test")
    )
    assert clip.index in order.between(backward, step)
    assert zero.index not in order.between(backward, step)
    assert loss.index not in order.between(clip, step)
    assert backward.index in order.between(step, clip)
    assert order.must_pass(step, step, [zero])
    assert not order.must_pass(backward, backward, [zero])
    assert order.must_reach(step, [zero])
    assert order.must_reach(loss, [test])
    assert not order.must_reach(loss, [step])
    assert not order.must_reach(graph.exit, [graph.exit])


def test_rounds_of_loops() -> None:
    graph = graph_of(TRAINING)
    order = graph.order(exceptions=False)
    backward, clip, step, loss, test = (
        call(graph, n) for n in ("backward", "clip", "step", "loss", "test")
    )
    assert order.leads_in_round([backward], step, [])
    assert not order.leads_in_round([backward], step, [clip])
    assert not order.leads_in_round([step], backward, [])
    assert order.leads_in_round([step, loss], backward, [])
    assert order.leads_in_round([step], test, [])
    assert not order.leads_in_round([test], loss, [])


def test_no_round_leads_from_one_way_of_a_test_to_the_other() -> None:
    graph = graph_of(
        """
        def train(loader):
            for batch in loader:
                if batch:
                    backward()
                else:
                    clip()
                    continue
                step()
        """
    )
    order = graph.order(exceptions=False)
    backward, clip, step = (call(graph, n) for n in ("backward", "clip", "step"))
    assert not order.leads_in_round([backward], clip, [])
    assert not order.leads_in_round([clip], step, [])
    assert order.witness(clip, step) is not None


def test_loops_of_a_training() -> None:
    graph = graph_of(TRAINING)
    order = graph.order(exceptions=False)
    inner, outer = order.loops_of(call(graph, "step"))
    assert (inner.header.line, outer.header.line) == (4, 3)
    assert inner.parent is outer
    assert outer.parent is None
    assert order.loops_of(call(graph, "test")) == (outer,)
    assert {edge.source.line for edge in inner.back} == {7, 10}
    assert [edge.kind for edge in inner.exits] == [EdgeKind.FALSE]


def test_witness_is_a_shortest_path() -> None:
    graph = graph_of(TRAINING)
    order = graph.order(exceptions=False)
    path = order.witness(call(graph, "backward"), call(graph, "backward"), [call(graph, "step")])
    assert path is not None
    assert list(dict.fromkeys(p.line for p in path)) == [6, 7, 4, 5]
    assert path[0] is path[-1]
    assert order.witness(call(graph, "test"), graph.entry) is None
    assert order.witness(call(graph, "clip"), call(graph, "zero"), [call(graph, "step")]) is None


def test_a_loop_with_two_entries() -> None:
    order = order_of({0: [1, 2], 1: [2, 3], 2: [1]}, 4, [3])
    (loop,) = order.loops
    assert [p.index for p in loop.headers] == [1, 2]
    assert [(e.source.index, e.target.index) for e in loop.exits] == [(1, 3)]
    assert not order.dominates(order.points[1], order.points[2])


def test_a_loop_with_two_entries_inside_a_loop() -> None:
    order = order_of({0: [1], 1: [2, 3], 2: [3], 3: [2, 4], 4: [1, 5]}, 6, [5])
    outer, inner = order.loops
    assert [p.index for p in outer.headers] == [1]
    assert inner.parent is outer
    assert [p.index for p in inner.headers] == [2, 3]


def test_dominators_are_what_removal_cuts_off() -> None:
    for seed in range(200):
        source = random.Random(seed)
        count = source.randint(2, 12)
        edges = [
            source.sample(range(count), source.randint(0, min(3, count))) for _ in range(count)
        ]
        found = immediate_dominators(edges, 0)
        for node in range(count):
            above = set()
            at = node
            while found[at] >= 0 and at not in above:
                above.add(at)
                at = found[at]
            cut = {d for d in range(count) if node not in _reached(edges, d)}
            expected = cut | {node} if node in _reached(edges, None) else set()
            assert above == expected, (seed, node)


def _reached(edges: list[list[int]], without: int | None) -> set[int]:
    seen: set[int] = set()
    stack = [] if without == 0 else [0]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [target for target in edges[node] if target != without]
    return seen
