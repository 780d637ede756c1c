"""Statements in the place of others."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import Replace
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "comments_above_and_at_the_end_stay",
        """
        # why
        a()  # note
        b()
        """,
        lambda p: [Replace(p.statement("a"), "c()\nd()")],
        """
        # why
        c()  # note
        d()
        b()
        """,
    ),
    case(
        "compound_text_in_the_indentation_of_the_file",
        """
        def f():
          if x:
            a()  # note
        """,
        lambda p: [Replace(p.statement("a"), "# new\nif y:\n    b(\n        1,\n    )\nc()")],
        """
        def f():
          if x:
            # new
            if y:  # note
              b(
                1,
              )
            c()
        """,
    ),
    case(
        "comment_of_the_text_has_the_line",
        """
        a()  # old
        """,
        lambda p: [Replace(p.statement("a"), "b()  # new")],
        """
        # old
        b()  # new
        """,
    ),
    case(
        "comments_behind_a_block_that_are_no_part_of_it_stay_where_they_are",
        """
        def f():
            if x:
                a()
                # of the block

        #    if y:
        #        c()
                # of c
            b()
        """,
        lambda p: [Replace(p.statement("if"), "d()")],
        """
        def f():
            d()
            # of the block

        #    if y:
        #        c()
                # of c
            b()
        """,
    ),
    case(
        "comments_inside_a_compound_statement_survive",
        """
        with scale(loss) as s:  # amp
            # gradients
            s.backward()  # all of them
        """,
        lambda p: [Replace(p.statement("with"), "loss.backward()")],
        """
        # gradients
        # all of them
        loss.backward()
        """,
    ),
    case(
        "single_comment_inside_stays_at_the_end",
        """
        with scale(loss) as s:
            s.backward()  # all of them
        """,
        lambda p: [Replace(p.statement("with"), "loss.backward()")],
        """
        loss.backward()  # all of them
        """,
    ),
    case(
        "one_of_several_on_a_line",
        """
        a(); b(); c()  # note
        """,
        lambda p: [Replace(p.statement("b"), "d()")],
        """
        a(); d(); c()  # note
        """,
    ),
    case(
        "several_lines_for_one_of_a_line",
        """
        if x: a(); b()  # note
        """,
        lambda p: [Replace(p.statement("a"), "c()\nd()")],
        """
        if x:
            c()
            d()
            b()  # note
        """,
    ),
    case(
        "elif_becomes_else",
        """
        if x:
            a()
        elif y:  # note
            b()
        """,
        lambda p: [Replace(p.elif_("y"), "c()")],
        """
        if x:
            a()
        else:
            c()  # note
        """,
    ),
    case(
        "elif_stays_elif",
        """
        if x:
            a()
        elif y:
            b()
        """,
        lambda p: [Replace(p.elif_("y"), "if z:\n    c()")],
        """
        if x:
            a()
        elif z:
            c()
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_replace(before: str, plan: Plan, after: str) -> None:
    """Only the lines of the edit change, as if by hand."""
    assert applied(before, plan) == after


def test_form_feed_and_spaces_stay() -> None:
    """Whitespace outside an edit keeps its bytes."""
    before = "a()\n\x0c\nb( 1 )   \n \nc()\n"

    assert applied(before, lambda p: [Replace(p.statement("a"), "d()")]) == "d()" + before[3:]
