"""Feasible paths: what an assumption, a branch or a store says, and what ends it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from amp_migrate.flow import NOTHING, Graph, Paths, assume, build, cautious, keeping, leads
from tests.flow.helpers import call, graph_of

FP16 = "args.fp16"


def body(text: str) -> Graph:
    return graph_of(
        "def f(args, x, y, flag: bool):\n" + textwrap.indent(textwrap.dedent(text), "    ")
    )


def reachable(text: str, *kept: str, **stated: object) -> bool:
    """Whether `hit()` may run in a body."""
    graph = body(text)
    changes = keeping(cautious(graph), kept) if kept else None
    assumption = assume({name.replace("__", "."): value for name, value in stated.items()})
    return Paths(graph, assumption, changes=changes).reachable(call(graph, "hit"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = None\nif x: hit()", False),
        ("x = None\ng()\nif x: hit()", False),
        ("x = 'a'\nif x == 'b': hit()", False),
        ("x = y\nif x: hit()", True),
        ("if x:\n  if not x: hit()", False),
        ("if flag:\n  g()\n  if not flag: hit()", False),
        ("if x:\n  g()\n  if not x: hit()", True),
        ("if x is None:\n  g()\n  if x: hit()", False),
        ("if flag:\n  flag = g()\n  if not flag: hit()", True),
        ("if args.a:\n  if not args.a: hit()", False),
        ("if args.a:\n  g()\n  if not args.a: hit()", True),
        ("if args.a:\n  len(x)\n  if not args.a: hit()", False),
        ("if args.a:\n  x.a = 1\n  if not args.a: hit()", True),
        ("if args.a:\n  x.b = 1\n  if not args.a: hit()", False),
        ("if args.a:\n  args = x\n  if not args.a: hit()", True),
        ("if x['k']:\n  y['k'] = 0\n  if not x['k']: hit()", True),
        ("args.a = True\nif not args.a: hit()", False),
        ("if x:\n  del x\n  if not x: hit()", True),
        ("if x == 1:\n  for x in y:\n    if x == 2: hit()", True),
        ("if (x + 1) % 4 == 0:\n  if (x + 1) % 4 != 0: hit()", False),
        ("if (x + 1) % 4 == 0:\n  x += 1\n  if (x + 1) % 4 != 0: hit()", True),
        ("x = y = not x\nif x and not y: hit()", True),
        ("x = True\nx = y = not x\nif y: hit()", True),
        ("x = 0\nif (x := x + 1) > 0: hit()", True),
        ("x = 2\ny = [x for x in y if not x]\nif not x: hit()", True),
        ("x = False\ny = [hit() for x in y if x]", True),
        ("match x:\n  case 'a':\n    if x == 'b': hit()", False),
        ("match x:\n  case 'a': pass\n  case _ if (x := y):\n    if x == 'a': hit()", True),
        ("match x:\n  case 'a': pass\n  case x if g(x): pass\n  case 'a': hit()", True),
        ("match x:\n  case 'a': pass\n  case 'b' if x: pass\n  case 'a': hit()", False),
        ("match x:\n  case None | 'a': pass\n  case _:\n    if x is None: hit()", False),
        ("def g():\n  nonlocal flag\nif flag:\n  g()\n  if not flag: hit()", True),
        ("try:\n  args.a = True\nexcept E:\n  if not args.a: hit()", True),
        ("try:\n  x = None\n  g()\nexcept E:\n  if x: hit()", False),
        ("flag = x is None\ng()\nif flag:\n  pass\nelif not flag: hit()", True),
        ("if x: pass\nelse:\n  if y: pass\n  elif x or y: hit()", False),
        ("global z\nif z:\n  if not z: hit()", False),
        ("if z:\n  g()\n  if not z: hit()", True),
    ],
)
def test_what_the_body_says(text: str, found: bool) -> None:
    assert reachable(text) is found


def test_what_is_assumed() -> None:
    text = "g()\nif args.fp16 and not args.cpu: pass\nelse: hit()"
    assert reachable(text)
    assert reachable(text, args__fp16=True, args__cpu=False)
    assert not reachable(text, "args.fp16", "args.cpu", args__fp16=True, args__cpu=False)
    assert reachable(text, "args.fp16", "args.cpu", args__fp16=True)


CORRELATED = """
g()
if args.fp16:
    scale()
else:
    plain()
backward()
if args.fp16:
    unscale()
step()
"""


def test_one_truth_along_a_path() -> None:
    graph = body(CORRELATED)
    kept = Paths(graph, changes=keeping(cautious(graph), {FP16}), exceptions=False)
    free = Paths(graph, exceptions=False)
    scale, plain, unscale, step = (call(graph, n) for n in ("scale", "plain", "unscale", "step"))
    assert kept.must_pass(scale, step, [unscale])
    assert not free.must_pass(scale, step, [unscale])
    assert kept.must_reach(scale, [unscale])
    assert not kept.may_reach(plain, unscale)
    assert free.may_reach(plain, unscale)
    assert kept.must_pass(graph.entry, unscale, [scale])
    assert leads(kept, [scale], [unscale], [step]) and leads(kept, [unscale], [step], [scale])
    assert not leads(kept, [plain], [unscale], [step])
    assert leads(free, [plain], [unscale], [step]) and leads(free, [unscale], [step], [plain])
    witness = kept.witness(plain, step)
    assert witness is not None
    assert unscale not in witness
    assert kept.witness(plain, unscale) is None


def test_order_of_what_is_left() -> None:
    graph = body(CORRELATED)
    changes = keeping(cautious(graph), {FP16})
    on = Paths(graph, assume({FP16: True}), changes=changes, exceptions=False)
    scale, plain, step = (call(graph, n) for n in ("scale", "plain", "step"))
    assert not graph.order(exceptions=False).dominates(scale, step)
    assert on.order.dominates(scale, step)
    assert not on.order.reachable(plain)
    assert on.evaluate(step, ast.parse("not args.fp16", mode="eval").body) is False
    assert on.holds(plain) is None


def test_a_loop_ends_what_it_changes() -> None:
    graph = body("first = True\nfor i in x:\n    if first: a()\n    else: b()\n    first = False")
    paths = Paths(graph, exceptions=False)
    a, b = call(graph, "a"), call(graph, "b")
    assert paths.may_reach(a, b)
    assert not paths.may_reach(b, a)
    assert paths.must_pass(graph.entry, b, [a])
    assert not graph.order(exceptions=False).must_pass(graph.entry, b, [a])


def test_many_flags_lose_facts_and_no_path() -> None:
    tests = "".join(f"if args.a{i}: p{i}()\n" for i in range(12))
    graph = body(tests + tests.replace("p", "q"))
    names = {f"args.a{i}" for i in range(12)}
    paths = Paths(graph, changes=keeping(cautious(graph), names), exceptions=False)
    assert all(paths.may_reach(call(graph, f"p{i}"), call(graph, f"q{i}")) for i in range(12))
    assert all(paths.reachable(p) for p in graph.points if graph.order(False).reachable(p))


def test_module_names_change_only_by_functions_that_say_so() -> None:
    text = "A = None\ng()\nif A: hit()\n"
    quiet = build(ast.parse(text))
    assert not Paths(quiet).reachable(call(quiet, "hit"))
    loud = build(ast.parse(text + "def s():\n    global A\n    A = 1\n"))
    assert Paths(loud).reachable(call(loud, "hit"))
    assert Paths(loud, NOTHING).states(loud.entry) == (NOTHING,)
