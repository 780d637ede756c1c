"""New names of parameters and keywords together with other edits."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import (
    AddArgument,
    AddParameter,
    Drop,
    DropBlock,
    Hoist,
    Move,
    RenameKeyword,
    RenameParameter,
    ReplaceExpression,
    Wrap,
)
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "on_one_call",
        "f(a, amp=x, k=y)\n",
        lambda p: [
            AddArgument(p.call("f"), "t", keyword="t"),
            RenameKeyword(p.call("f"), "amp", "s"),
            AddArgument(p.call("f"), "b"),
            ReplaceExpression(p.expression("x"), "z"),
            RenameKeyword(p.call("f"), "k", "l"),
        ],
        "f(a, b, s=z, l=y, t=t)\n",
    ),
    case(
        "inside_the_arguments",
        "f(amp=g(amp=h(x)))\n",
        lambda p: [
            RenameKeyword(p.call("f"), "amp", "s"),
            RenameKeyword(p.call("g"), "amp", "t"),
            AddArgument(p.call("h"), "y"),
        ],
        "f(s=g(t=h(x, y)))\n",
    ),
    case(
        "function_of_the_call",
        "f(amp=x)\n",
        lambda p: [
            ReplaceExpression(p.expression("f"), "g.f"),
            RenameKeyword(p.call("f"), "amp", "s"),
        ],
        "g.f(s=x)\n",
    ),
    case(
        "names_change_places",
        "def f(a, b): return g(a=a, b=b)\n",
        lambda p: [
            RenameParameter(p.statement("def"), "a", "b"),
            RenameParameter(p.statement("def"), "b", "a"),
            RenameKeyword(p.call("g"), "a", "b"),
            RenameKeyword(p.call("g"), "b", "a"),
        ],
        "def f(b, a): return g(b=a, a=b)\n",
    ),
    case(
        "on_one_function",
        '''
        @d(amp=1)
        def f(amp, k=g(amp=2)):
            """Train.

            Args:
                amp: handle
            """
            return amp
        ''',
        lambda p: [
            AddParameter(p.statement("def"), "t", doc="new"),
            RenameParameter(p.statement("def"), "amp", "s"),
            RenameKeyword(p.call("d"), "amp", "v"),
            RenameKeyword(p.call("g"), "amp", "w"),
            ReplaceExpression(p.expression("2"), "3"),
            ReplaceExpression(p.expression("amp"), "s"),
        ],
        '''
        @d(v=1)
        def f(s, k=g(w=3), t=None):
            """Train.

            Args:
                s: handle
                t: new
            """
            return s
        ''',
    ),
    case(
        "moved_and_wrapped",
        """
        a()
        def f(amp):
            return g(amp=amp)
        f(amp=1)
        """,
        lambda p: [
            RenameParameter(p.statement("def"), "amp", "s"),
            RenameKeyword(p.call("g"), "amp", "t"),
            Move(p.statement("def"), p.statement("a"), after=False),
            RenameKeyword(p.call("f"), "amp", "s"),
            Wrap(p.statement("f"), p.statement("f"), "with w:"),
        ],
        """
        def f(s):
            return g(t=amp)
        a()
        with w:
            f(s=1)
        """,
    ),
    case(
        "kept_block_of_a_hoisted_if",
        """
        if f(amp=1):
            f(amp=2)
        else:
            f(amp=3)
        """,
        lambda p: [
            Hoist(p.statement("if"), "orelse"),
            *(RenameKeyword(p.call("f", n), "amp", "s") for n in range(3)),
        ],
        """
        f(s=3)
        """,
    ),
    case(
        "dropped_places",
        """
        a()
        def g(amp): f(amp=1)
        if x: b()
        else: f(amp=2)
        """,
        lambda p: [
            Drop(p.statement("def")),
            RenameParameter(p.statement("def"), "amp", "s"),
            *(RenameKeyword(p.call("f", n), "amp", "s") for n in range(2)),
            DropBlock(p.statement("if")),
        ],
        """
        a()
        if x: b()
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_with_other_edits(before: str, plan: Plan, after: str) -> None:
    """New names go together with other edits of the same place, inside and around it."""
    assert applied(before, plan) == after
