"""Statements under a new header."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import Drop, Insert, Move, ReplaceExpression, Wrap
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "comments_above_stay_above_others_go_inside",
        """
        def f():
            a()

            # forward
            b()  # note

            # loss
            c(1,
              2)
            # tail
        """,
        lambda p: [Wrap(p.statement("b"), p.statement("c"), "with autocast(enabled=x):")],
        """
        def f():
            a()

            # forward
            with autocast(enabled=x):
                b()  # note

                # loss
                c(1,
                  2)
            # tail
        """,
    ),
    case(
        "indentation_of_the_block",
        "if x:\n\ta = 1 + \\\n\t    2\n\tb = '''\n  text'''\n\tif y:\n\t\tc()\n",
        lambda p: [Wrap(p.statement("a"), p.statement("if y"), "with w:")],
        "if x:\n\twith w:\n\t\ta = 1 + \\\n\t\t    2\n\t\tb = '''\n  text'''\n\t\tif y:\n\t\t\tc()\n",
    ),
    case(
        "inserted_stay_outside_moved_leave",
        """
        a()
        b()
        c()
        d()
        """,
        lambda p: [
            Wrap(p.statement("a"), p.statement("c"), "with w:"),
            Insert(p.statement("a"), "e()", after=False),
            Insert(p.statement("c"), "f()", after=True),
            Insert(p.statement("a"), "g()", after=True),
            Move(p.statement("b"), p.statement("d"), after=True),
        ],
        """
        e()
        with w:
            a()
            g()
            c()
        f()
        d()
        b()
        """,
    ),
    case(
        "first_and_last_dropped",
        """
        a()

        b()

        c()

        d()
        """,
        lambda p: [
            Wrap(p.statement("a"), p.statement("c"), "with w:"),
            Drop(p.statement("a")),
            Drop(p.statement("c")),
        ],
        """
        with w:
            b()

        d()
        """,
    ),
    case(
        "nested",
        """
        for i in x:
            a()
            b()
        """,
        lambda p: [
            Wrap(p.statement("for"), p.statement("for"), "with w:"),
            Wrap(p.statement("b"), p.statement("b"), "with v:"),
            ReplaceExpression(p.expression("x"), "y"),
        ],
        """
        with w:
            for i in y:
                a()
                with v:
                    b()
        """,
    ),
    case(
        "nested_in_one_block",
        """
        a()
        b()

        # second
        c()  # note
        d()
        e()
        """,
        lambda p: [
            Wrap(p.statement("a"), p.statement("d"), "with w:"),
            Wrap(p.statement("a"), p.statement("a"), "with v:"),
            Wrap(p.statement("c"), p.statement("d"), "with u:"),
            Insert(p.statement("c"), "f()", after=True),
            Insert(p.statement("d"), "g()", after=True),
        ],
        """
        with w:
            with v:
                a()
            b()

            # second
            with u:
                c()  # note
                f()
                d()
        g()
        e()
        """,
    ),
    case(
        "some_on_a_line",
        """
        a(); b(); c()  # note
        """,
        lambda p: [Wrap(p.statement("b"), p.statement("c"), "with w:")],
        """
        a()
        with w:
            b()
            c()  # note
        """,
    ),
    case(
        "all_on_a_line",
        """
        a(); b()  # note
        """,
        lambda p: [Wrap(p.statement("a"), p.statement("b"), "with w:")],
        """
        with w:
            a(); b()  # note
        """,
    ),
    case(
        "one_line_suite_and_lambda",
        """
        if x: f = lambda: 1  # note
        """,
        lambda p: [Wrap(p.statement("f"), p.statement("f"), "with w:")],
        """
        if x:
            with w:
                f = lambda: 1  # note
        """,
    ),
    case(
        "async_function_and_match",
        """
        async def f():
            match await x:
                case 1:
                    a()
        """,
        lambda p: [Wrap(p.statement("a()"), p.statement("a()"), "async with w:")],
        """
        async def f():
            match await x:
                case 1:
                    async with w:
                        a()
        """,
    ),
    case(
        "more_statements_follow_under_the_header",
        """
        def f():
            a()  # note
            b(c())
        """,
        lambda p: [
            Wrap(p.statement("a()"), p.statement("a()"), "with w:", "x = c(\n    1\n)\ny = 2")
        ],
        """
        def f():
            with w:
                a()  # note
                x = c(
                    1
                )
                y = 2
            b(c())
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_wrap(before: str, plan: Plan, after: str) -> None:
    """Statements go under a header, and what is beside them stays out."""
    assert applied(before, plan) == after
