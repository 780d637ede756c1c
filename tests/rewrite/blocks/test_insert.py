"""Statements put before and after others."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import Insert
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "before_and_after_in_the_order_of_the_plan",
        """
        # step
        a()  # note

        b()
        """,
        lambda p: [
            Insert(p.statement("a"), "c()", after=False),
            Insert(p.statement("a"), "d()", after=True),
            Insert(p.statement("a"), "e()", after=False),
            Insert(p.statement("a"), "f()", after=True),
        ],
        """
        # step
        c()
        e()
        a()  # note
        d()
        f()

        b()
        """,
    ),
    case(
        "comment_keeps_to_a_compound_statement",
        """
        a()

        # training
        for x in y:
            b()
        """,
        lambda p: [Insert(p.statement("for"), "c()", after=False)],
        """
        a()

        c()
        # training
        for x in y:
            b()
        """,
    ),
    case(
        "below_the_first_line_of_a_script",
        """
        #!/usr/bin/env python
        # training
        for x in y:
            b()
        """,
        lambda p: [Insert(p.statement("for"), "c()", after=False)],
        """
        #!/usr/bin/env python
        c()
        # training
        for x in y:
            b()
        """,
    ),
    case(
        "beside_one_of_several_on_a_line",
        """
        if x:
            a(); b()  # note
        """,
        lambda p: [Insert(p.statement("a"), "c()", after=True)],
        """
        if x:
            a()
            c()
            b()  # note
        """,
    ),
    case(
        "in_a_one_line_suite",
        """
        if x: a()  # note
        else: b()
        """,
        lambda p: [Insert(p.statement("a"), "c()", after=True)],
        """
        if x:
            a()  # note
            c()
        else: b()
        """,
    ),
    case(
        "beside_a_function",
        """
        import a


        @d
        def f(): pass
        """,
        lambda p: [
            Insert(p.statement("def"), "b()", after=False),
            Insert(p.statement("def"), "c()", after=True),
        ],
        """
        import a


        b()


        @d
        def f(): pass


        c()
        """,
    ),
    case(
        "before_an_elif",
        """
        if x: a()
        elif y: b()
        """,
        lambda p: [Insert(p.elif_("y"), "c()", after=False)],
        """
        if x: a()
        else:
            c()
            if y: b()
        """,
    ),
    case(
        "comment_after_the_text",
        """
        a()

        b()
        """,
        lambda p: [Insert(p.statement("a"), "c()\n# tail", after=True)],
        """
        a()
        c()
        # tail

        b()
        """,
    ),
    case(
        "same_edit_twice_is_one",
        """
        a()
        """,
        lambda p: [Insert(p.statement("a"), "b()", after=True)] * 2,
        """
        a()
        b()
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_insert(before: str, plan: Plan, after: str) -> None:
    """Only the lines of the edit change, as if by hand."""
    assert applied(before, plan) == after


def test_no_final_newline() -> None:
    """A file without a newline at its end keeps none."""
    assert applied("a()", lambda p: [Insert(p.statement("a"), "b()", after=True)]) == "a()\nb()"
