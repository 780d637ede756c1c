"""Under which tests a point runs."""

from __future__ import annotations

import textwrap

import pytest

from amp_migrate.flow import NEVER, Control, Graph
from tests.flow.helpers import call, graph_of


def condition(text: str, name: str = "hit") -> str:
    graph = body(text)
    return str(Control(graph.order(exceptions=False)).condition(call(graph, name)))


def body(text: str) -> Graph:
    return graph_of("def f():\n" + textwrap.indent(text, "    "))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hit()", "always"),
        ("if a: hit()", "a"),
        ("if a: pass\nelse: hit()", "not (a)"),
        ("if a and not b: hit()", "a and not (b)"),
        ("if a or b: hit()", "(a or not (a) and b)"),
        ("if a: return\nhit()", "not (a)"),
        ("if a: return\nif b: return\nhit()", "not (a) and not (b)"),
        ("if a: pass\nhit()", "always"),
        ("x = b and hit()", "b"),
        ("for x in y: hit()", "<true at line 2>"),
        ("for x in y:\n  if a: continue\n  hit()", "<true at line 2> and not (a)"),
        ("for x in y:\n  if a: break\n  hit()", "<true at line 2> and not (a)"),
        ("for x in y: pass\nhit()", "always"),
        ("while a: pass\nhit()", "always"),
        ("while True:\n  if a: hit()", "a"),
        ("with a:\n  if b: raise E\n  hit()", "not (b)"),
        ("try:\n  if b: raise E\nexcept E: hit()", "b and <true at line 4>"),
        ("try:\n  if b: return\nfinally: pass\nhit()", "not (b)"),
        ("match a:\n  case 1: pass\n  case 2: hit()", "not (a == 1) and a == 2"),
        ("assert a\nhit()", "a"),
    ],
)
def test_condition(text: str, found: str) -> None:
    assert condition(text) == found


def test_dead_code_never_runs() -> None:
    graph = graph_of("def f():\n    return\n    hit()")
    dead = [p for p in graph.points if p.line == 3]
    assert Control(graph.order()).condition(dead[0]) == NEVER


def test_many_alternatives_stay_small() -> None:
    text = "".join(f"if a{i} and b{i}: return\n" for i in range(60)) + "hit()"
    graph = body(text)
    found = Control(graph.order(exceptions=False)).condition(call(graph, "hit"))
    parts, stack = {id(found): found}, [found]
    while stack:
        for part in getattr(stack.pop(), "parts", ()):
            if id(part) not in parts:
                parts[id(part)] = part
                stack.append(part)
    assert len(parts) < 1000


def test_direct_edges() -> None:
    graph = body("if a:\n    if b: hit()")
    (edge,) = Control(graph.order(exceptions=False)).direct(call(graph, "hit"))
    assert (edge.source.line, edge.truth) == (3, True)
