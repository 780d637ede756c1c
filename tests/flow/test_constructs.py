"""Every construct of Python, by hand."""

from __future__ import annotations

import ast
import sys
from itertools import pairwise

import pytest

from amp_migrate.flow import EdgeKind, Graphs, Kind, Way, build
from tests.flow.helpers import call, calls, graph_of, straight


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("f(g(), *h(), k=i())", "g h i f"),
        ("x = f()", "f"),
        ("a()[b()] = c()", "c a b"),
        ("a()[b()] += c()", "a b c"),
        ("x, a().y = b(), c()", "b c a"),
        ("{a(): b(), **c()}", "a b c"),
        ("f'{a()!r:{b()}} {c()}'", "a b c"),
        ("a()[b():c():d()]", "a b c d"),
        ("a() < b()", "a b"),
        ("del a()[b()], c().d", "a b c"),
        ("pass\n@a()\n@b()\ndef f(x=c(), *, y=d()): e()", "a b c d"),
        ("@a()\nclass C(b(), metaclass=c()): d()", "a b c"),
        ("lambda x=a(): b()", "a"),
        ("(b() for x in a())", "a"),
        ("raise a() from b()", "a b"),
        ("(x := a()) + b()", "a b"),
        ("assert a(), b()", "a b"),
        ("async def f():\n  await a(b())", "b a"),
        ("def f():\n  yield a((yield b()))", "b a"),
    ],
)
def test_order_inside_a_statement(text: str, order: str) -> None:
    graph = graph_of(text)
    found = [
        p.node.func.id
        for p in graph.points
        if isinstance(p.node, ast.Call)
        and p.kind is Kind.CALL
        and isinstance(p.node.func, ast.Name)
    ]
    assert found == order.split()


def test_all_points_of_a_statement() -> None:
    assert straight("x.y = z[0]") == [
        "load z",
        "load z[0]",
        "load x",
        "store x.y",
    ]
    assert straight("import a, b as c") == [
        "import a",
        "store a",
        "import b as c",
        "store b as c",
    ]
    assert straight("x: int = 1\npass\nglobal y\n'text'") == [
        "store x",
        "step pass",
        "step global y",
        "step 'text'",
    ]
    assert straight("with a as b, c: d") == [
        "load a",
        "enter a as b",
        "store b",
        "load c",
        "enter c",
        "load d",
        "leave c",
        "leave a as b",
    ]


def test_short_circuits_are_branches() -> None:
    graph = graph_of("x = a() and b() or c()\nd()")
    order = graph.order()
    assert order.dominates(call(graph, "a"), call(graph, "d"))
    assert not order.dominates(call(graph, "b"), call(graph, "d"))
    assert not order.must_reach(call(graph, "b"), [call(graph, "c")])
    assert order.may_reach(call(graph, "b"), call(graph, "c"))


def test_a_test_is_split_into_its_leaves() -> None:
    graph = graph_of("if a and not b:\n    f()\nelse:\n    g()")
    path = graph.order(exceptions=False).witness(graph.entry, call(graph, "f"))
    assert path is not None
    tests = [
        (ast.unparse(edge.test), edge.truth)
        for p, q in pairwise(path)
        for edge in graph.successors(p)
        if edge.target is q and edge.test is not None
    ]
    assert tests == [("a", True), ("b", False)]


def test_chained_comparison_stops() -> None:
    graph = graph_of("a() < b() < c()\nd()")
    order = graph.order(exceptions=False)
    assert order.dominates(call(graph, "b"), call(graph, "d"))
    assert not order.dominates(call(graph, "c"), call(graph, "d"))


def test_conditional_expression() -> None:
    graph = graph_of("x = f(a() if b() else c())")
    order = graph.order()
    assert order.dominates(call(graph, "b"), call(graph, "a"))
    assert not order.may_reach(call(graph, "a"), call(graph, "c"))
    assert order.dominates(call(graph, "b"), call(graph, "f"))


def test_comprehension_is_a_loop() -> None:
    graph = graph_of("x = [a(y) for y in b() if c(y) for z in d()]\ne()")
    order = graph.order(exceptions=False)
    assert not order.may_reach(call(graph, "b"), call(graph, "b"))
    assert order.may_reach(call(graph, "a"), call(graph, "c"))
    assert not order.dominates(call(graph, "c"), call(graph, "e"))
    assert [len(order.loops_of(call(graph, n))) for n in "abcde"] == [2, 0, 1, 1, 0]


def test_generator_expression_runs_later() -> None:
    node = ast.parse("(a(x) for x in b() if c(x))", mode="eval").body
    assert isinstance(node, ast.GeneratorExp)
    graph = build(node)
    assert [p.kind for p in graph.points if p.kind in (Kind.CALL, Kind.YIELD)] == [
        Kind.CALL,
        Kind.CALL,
        Kind.YIELD,
    ]
    assert not calls(graph, "b")


def test_for_else_and_break() -> None:
    graph = graph_of("for x in y:\n    if a(): break\n    b()\nelse:\n    c()\nd()")
    order = graph.order(exceptions=False)
    assert not order.must_reach(call(graph, "a"), [call(graph, "c")])
    assert order.must_pass(call(graph, "b"), call(graph, "d"), [call(graph, "a"), call(graph, "c")])
    assert not order.dominates(call(graph, "c"), call(graph, "d"))


def test_endless_loop_and_what_follows_it() -> None:
    graph = graph_of("def f():\n    while True:\n        a()\n        b()\n    c()")
    order = graph.order(exceptions=False)
    assert not calls(graph, "c")
    assert not order.reachable(graph.exit)
    assert order.must_reach(call(graph, "a"), [call(graph, "b")])
    assert not order.must_reach(call(graph, "a"), [graph.exit])


def test_finally_runs_once_for_every_way() -> None:
    graph = graph_of(
        """
        def f():
            for x in y:
                try:
                    if a(): break
                    if b(): continue
                    if c(): return
                    d()
                finally:
                    e()
                g()
            h()
        """
    )
    ways = {point.way for point in calls(graph, "e")}
    assert ways == {Way.NORMAL, Way.RAISE, Way.RETURN, Way.BREAK, Way.CONTINUE}
    order = graph.order(exceptions=False)
    (plain,) = (p for p in calls(graph, "e") if p.way is Way.NORMAL)
    assert order.dominates(plain, call(graph, "g"))
    assert order.must_reach(call(graph, "a"), calls(graph, "e"))


def test_leaving_a_context_on_an_exception() -> None:
    text = "def f():\n    with a() as b:\n        c()\n    d()"
    graph = graph_of(text)
    leaves = [p for p in graph.points if p.kind is Kind.LEAVE]
    assert {p.way for p in leaves} == {Way.NORMAL, Way.RAISE}
    assert not graph.order().dominates(call(graph, "c"), call(graph, "d"))
    assert graph.order(exceptions=False).dominates(call(graph, "c"), call(graph, "d"))
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    strict = Graphs(swallows=lambda context: False).of(function)
    assert strict.order().dominates(call(strict, "c"), call(strict, "d"))


def test_handlers() -> None:
    graph = graph_of(
        "try:\n    a()\nexcept X as e:\n    b()\nexcept Y:\n    c()\nelse:\n    d()\nf()"
    )
    order = graph.order()
    assert order.must_pass(call(graph, "a"), call(graph, "f"), [call(graph, n) for n in "bcd"])
    assert not order.may_reach(call(graph, "b"), call(graph, "c"))
    assert not order.may_reach(call(graph, "d"), call(graph, "b"))
    assert {p.way for p in graph.points if p.kind is Kind.UNBIND} == {Way.NORMAL, Way.RAISE}
    assert not graph.order(exceptions=False).reachable(call(graph, "b"))


def test_raise_counts_without_implicit_exceptions() -> None:
    graph = graph_of("try:\n    raise X\nexcept X:\n    a()\nb()")
    order = graph.order(exceptions=False)
    assert order.dominates(call(graph, "a"), call(graph, "b"))


if sys.version_info >= (3, 11):

    def test_except_star_runs_every_handler_that_fits() -> None:
        graph = graph_of("try:\n    a()\nexcept* X:\n    b()\nexcept* Y:\n    c()\nd()")
        order = graph.order()
        assert order.may_reach(call(graph, "b"), call(graph, "c"))
        assert any(
            e.kind is EdgeKind.RAISE and e.target is graph.raised
            for out in graph.edges
            for e in out
        )
        assert not order.may_reach(call(graph, "c"), call(graph, "b"))


def test_match() -> None:
    graph = graph_of("match s():\n  case 1: a()\n  case [x, y] if b(): c()\n  case z: d()\ne()")
    order = graph.order(exceptions=False)
    assert order.must_pass(call(graph, "s"), call(graph, "e"), [call(graph, n) for n in "acd"])
    assert order.may_reach(call(graph, "b"), call(graph, "d"))
    assert not order.may_reach(call(graph, "a"), call(graph, "b"))


def test_match_without_a_case_for_the_rest() -> None:
    graph = graph_of("match s:\n  case 'a': a()\n  case 'b' | None: b()\ne()")
    order = graph.order(exceptions=False)
    assert order.witness(graph.entry, call(graph, "e"), [call(graph, "a"), call(graph, "b")])
    tests = {ast.unparse(e.test) for out in graph.edges for e in out if e.test is not None}
    assert tests == {"s == 'a'", "s == 'b' or s is None"}


def test_async_statements() -> None:
    graph = graph_of(
        "async def f():\n  async with a() as b:\n    async for x in c():\n      await d()\n  e()"
    )
    order = graph.order(exceptions=False)
    assert len(order.loops) == 1
    assert order.may_reach(call(graph, "d"), call(graph, "d"))
    assert order.dominates(call(graph, "c"), call(graph, "e"))


def test_code_after_a_jump_has_points_that_nothing_reaches() -> None:
    graph = graph_of("def f():\n    return a()\n    b()")
    dead = [p for p in graph.points if isinstance(p.node, ast.Call) and p.line == 3]
    assert dead
    assert not graph.order().reachable(dead[0])


def test_a_node_without_a_body_has_no_graph() -> None:
    with pytest.raises(TypeError):
        build(ast.parse("x").body[0])  # type: ignore[arg-type]


def test_graphs_are_built_once() -> None:
    module = ast.parse("x = 1")
    graphs = Graphs()
    assert graphs.of(module) is graphs.of(module)


if sys.version_info >= (3, 12):

    def test_type_alias() -> None:
        assert straight("type X = a()") == ["define type X = a()", "store X"]
