"""The data-flow engine on problems with known answers."""

from __future__ import annotations

from amp_migrate.flow import Edge, EdgeKind, Kind, Point, solve
from amp_migrate.flow.changes import stored_name
from tests.flow.helpers import call, graph_of

Names = frozenset[str]


def bound(point: Point, names: Names) -> Names:
    name = stored_name(point.node) if point.kind is Kind.STORE else None
    return names | {name} if name else names


def test_names_bound_on_every_path() -> None:
    graph = graph_of("a = 1\nfor b in x:\n    c = 1\n    f()\nelse:\n    d = 1\ng()")
    found = solve(graph.order(False), frozenset[str](), bound, lambda p, q: p & q)
    assert found.before[call(graph, "f")] == {"a", "b", "c"}
    assert found.before[call(graph, "g")] == {"a", "d"}


def test_names_bound_when_an_exception_comes() -> None:
    def along(edge: Edge, before: Names, after: Names) -> Names:
        return before if edge.kind is EdgeKind.EXCEPTION else after

    graph = graph_of("try:\n    a = f()\n    b = g()\nexcept X:\n    h()\nk()")
    found = solve(graph.order(), frozenset[str](), bound, lambda p, q: p & q, along=along)
    assert found.before[call(graph, "h")] == set()
    some = solve(graph.order(), frozenset[str](), bound, lambda p, q: p | q, along=along)
    assert some.before[call(graph, "h")] == {"a"}
    assert some.before[call(graph, "k")] == {"a", "b"}


def test_edges_that_are_not_taken() -> None:
    def along(edge: Edge, before: Names, after: Names) -> Names | None:
        return None if edge.truth is False else after

    graph = graph_of("if x:\n    a = 1\nelse:\n    b = 1\nk()")
    found = solve(graph.order(False), frozenset[str](), bound, lambda p, q: p | q, along=along)
    assert found.before[call(graph, "k")] == {"a"}
    (dead,) = (p for p in graph.points if p.kind is Kind.STORE and p.line == 4)
    assert dead not in found.before


def test_live_names_run_backward() -> None:
    def live(point: Point, names: Names) -> Names:
        name = stored_name(point.node)
        if name is None:
            return names
        if point.kind is Kind.STORE:
            return names - {name}
        return names | {name} if point.kind is Kind.LOAD else names

    graph = graph_of("def f(x, y):\n    while x:\n        a = y\n        x = a\n    return a")
    order = graph.order(False)
    found = solve(order, frozenset[str](), live, lambda p, q: p | q, backward=True)
    assert found.before[graph.entry] == {"x", "y", "a"}
    (store,) = (p for p in graph.points if p.kind is Kind.STORE and p.line == 4)
    assert found.after[store] == {"x", "y", "a"}
    assert found.before[store] == {"y", "a"}


def test_an_endless_loop_has_a_backward_solution() -> None:
    graph = graph_of("def f():\n    while True:\n        g()")
    seen = solve(
        graph.order(False),
        frozenset[str](),
        lambda p, v: v | {p.kind.value},
        lambda p, q: p | q,
        backward=True,
    )
    assert "call" in seen.before[graph.entry]
