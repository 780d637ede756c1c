"""What stands, and runs, before what in a function."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.project.order import (
    common,
    dominates,
    exclusive,
    inside,
    levels,
    loop_of,
    position,
)
from amp_migrate.project.rounds import last_before, may_follow, may_skip, may_start, runs_before
from tests.project.helpers import Case


class Body(Case):
    """A function whose statements `a()`, `b()` and `c()` are asked about."""

    def __init__(self, body: str) -> None:
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        super().__init__({"m.py": f"def f(x, y):\n{lines}"})
        self.f = self.function("m.py", "f")
        self.tree = self.f.module.tree

    def stmt(self, name: str) -> ast.stmt:
        """Return the statement that calls a name."""
        return self.tree.statement(self.call("m.py", f"{name}()"))


# a always before b when b runs by their places; a in another branch than b; a may run before b in a round, and in any
ORDERS: dict[str, tuple[str, bool, bool, bool, bool]] = {
    "in a row": ("a()\nb()", True, False, True, True),
    "the other way": ("b()\na()", False, False, False, False),
    "in branches": ("if x:\n    a()\nelse:\n    b()", False, True, False, False),
    "in branches of a loop": ("for i in x:\n    if y:\n        a()\n    else:\n        b()", False, True, False, True),
    "within a test": ("if x:\n    a()\nb()", False, False, True, True),
    "before a test": ("a()\nif x:\n    b()", True, False, True, True),
    "the next round": ("for i in x:\n    b()\n    a()", False, False, False, True),
    "a loop before": ("for i in x:\n    a()\nb()", False, False, True, True),
    "behind a return": ("a()\nreturn\nb()", True, False, False, False),
    "a return between": ("if x:\n    a()\n    return\nb()", False, False, False, False),
    "a raise between": ("if x:\n    a()\n    raise E\nb()", False, False, False, False),
    "in finally": ("try:\n    a()\nfinally:\n    b()", False, False, True, True),
    "in an else of try": ("try:\n    a()\nexcept E:\n    pass\nelse:\n    b()", False, False, True, True),
    "in a with": ("with x:\n    a()\nb()", False, False, True, True),
    "in cases": ("match x:\n    case 1:\n        a()\n    case _:\n        b()", False, False, False, False),
    "in the else of a loop": ("for i in x:\n    a()\nelse:\n    b()", False, False, True, True),
    "behind a break": ("for i in x:\n    a()\n    break\nb()", False, False, True, True),
    "behind an endless loop": ("while True:\n    a()\nb()", False, False, False, False),
    "in a function inside": ("def g():\n    a()\nb()", False, False, True, True),
    "a short circuit": ("x and a()\nb()", True, False, True, True),
    "a choice": ("a() if x else b()", False, False, False, False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "always", "apart", "in_round", "ever"), ORDERS.values(), ids=ORDERS
)
def test_orders(body: str, always: bool, apart: bool, in_round: bool, ever: bool) -> None:
    """By their places, and on the control-flow graph."""
    case = Body(body)
    a, b = case.call("m.py", "a()"), case.call("m.py", "b()")
    assert dominates(case.tree, case.stmt("a"), b) is always
    assert exclusive(case.tree, a, b) is apart and exclusive(case.tree, b, a) is apart
    assert runs_before(case.project, case.f, a, b) is in_round
    assert may_follow(case.project, case.f, a, b) is ever


def test_nothing_of_some_nodes_on_the_way() -> None:
    """What stands between them on every way, or on some."""
    for body, free in (
        ("a()\nc()\nb()", False),
        ("a()\nif x:\n    c()\nb()", True),
        ("c()\na()\nb()", True),
    ):
        case = Body(body)
        a, b, c = (case.call("m.py", f"{name}()") for name in "abc")
        assert runs_before(case.project, case.f, a, b, [c]) is free, body
        assert may_follow(case.project, case.f, a, b, [c]) is free, body


def test_start_of_a_function() -> None:
    """A node may be the first of some to run, or never."""
    for body, free in (
        ("c()\nb()", False),
        ("if x:\n    c()\nb()", True),
        ("b()\nc()", True),
        ("return\nb()\nc()", False),
    ):
        case = Body(body)
        b, c = case.call("m.py", "b()"), case.call("m.py", "c()")
        assert may_start(case.project, case.f, b, [c]) is free, body


def test_exceptions_count_where_they_are_asked_for() -> None:
    """Whatever may raise may lead to a handler."""
    case = Body("try:\n    a()\n    return\nexcept E:\n    b()")
    a, b = case.call("m.py", "a()"), case.call("m.py", "b()")
    assert not runs_before(case.project, case.f, a, b)
    assert runs_before(case.project, case.f, a, b, exceptions=True)


def test_last_of_some_nodes() -> None:
    """Those that another one does not hide."""
    for body, names in (
        ("a()\nc()\nb()", ["c()"]),
        ("a()\nif x:\n    c()\nb()", ["a()", "c()"]),
        ("if x:\n    a()\nelse:\n    c()\nb()", ["a()", "c()"]),
        ("b()\na()\nc()", []),
    ):
        case = Body(body)
        a, b, c = (case.call("m.py", f"{name}()") for name in "abc")
        found = last_before(case.project, case.f, [a, c], b)
        assert [ast.unparse(node) for node in found] == names, body


SKIPS: dict[str, tuple[str, bool]] = {
    "a return before": ("if x:\n    return\nb()", True),
    "a return behind": ("b()\nif x:\n    return", False),
    "in the branch of the node": ("if x:\n    b()\n    return", False),
    "in the other branch": ("if x:\n    return\nelse:\n    b()", False),
    "a continue": ("for i in x:\n    if y:\n        continue\n    b()", True),
    "plain": ("return\nb()", False),
}


@pytest.mark.parametrize(("body", "skips"), SKIPS.values(), ids=SKIPS)
def test_jumps_that_may_leave_a_node_out(body: str, skips: bool) -> None:
    """What decides about the jump may run before the node."""
    case = Body(body)
    jump = next(n for n in case.tree.parents if isinstance(n, ast.Return | ast.Continue))
    assert may_skip(case.project, case.f, jump, case.call("m.py", "b()")) is skips


def test_levels_and_loops() -> None:
    """Statements around a node up to its function, and the innermost loop of that."""
    case = Body(
        "for i in x:\n    with y:\n        try:\n            a()\n        except E:\n            def g():\n                b()"
    )
    a, b = case.call("m.py", "a()"), case.call("m.py", "b()")
    assert [type(s).__name__ for s in levels(case.tree, a)] == ["Expr", "Try", "With", "For"]
    assert [type(s).__name__ for s in levels(case.tree, b)] == ["Expr"]
    assert isinstance(loop_of(case.tree, a), ast.For) and loop_of(case.tree, b) is None
    assert inside(case.tree, b, case.f.scope) and not inside(case.tree, a, case.stmt("b"))
    pair = common(case.tree, a, b)
    assert (
        pair is not None and pair[0] is pair[1] and isinstance(pair[0], ast.Try) is False
    ) or pair is None


def test_common_block() -> None:
    """The statements of the innermost block around two nodes."""
    case = Body("if x:\n    a()\nc()\nif y:\n    b()")
    a, b, c = (case.call("m.py", f"{name}()") for name in "abc")
    pair = common(case.tree, a, b)
    assert pair is not None and [position(case.tree, stmt) for stmt in pair] == [0, 2]
    pair = common(case.tree, c, b)
    assert pair is not None and pair[0] is case.stmt("c")
    pair = common(case.tree, a, a)
    assert pair is not None and pair[0] is pair[1] is case.stmt("a")
