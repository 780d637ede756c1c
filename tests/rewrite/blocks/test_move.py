"""Statements that go elsewhere."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import Drop, Hoist, Insert, Move, Replace, ReplaceExpression
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "with_its_comments",
        """
        a()

        # about b
        b()  # note

        c()
        """,
        lambda p: [Move(p.statement("b"), p.statement("c"), after=True)],
        """
        a()

        c()
        # about b
        b()  # note
        """,
    ),
    case(
        "first_statement_of_the_file",
        """
        # about a
        a()
        b()
        """,
        lambda p: [Move(p.statement("a"), p.statement("b"), after=True)],
        """
        b()
        # about a
        a()
        """,
    ),
    case(
        "into_and_out_of_blocks",
        """
        zero()  # note
        if x:
            step()
        if y: a()
        for i in z:
            '''text'''
        """,
        lambda p: [
            Move(p.statement("zero"), p.statement("step"), after=True),
            Move(p.statement("step"), p.statement("if y"), after=False, inside="end"),
            Move(p.statement("a"), p.statement("for"), after=False, inside="start"),
        ],
        """
        if x:
            pass
        if y:
            step()
            zero()  # note
        for i in z:
            a()
            '''text'''
        """,
    ),
    case(
        "start_is_below_the_docstring",
        """
        a()
        def f():
            '''Doc.'''

            b()
            # tail
        c()
        """,
        lambda p: [
            Move(p.statement("a"), p.statement("def"), after=False, inside="start"),
            Move(p.statement("c"), p.statement("def"), after=False, inside="end"),
        ],
        """
        def f():
            '''Doc.'''
            a()

            b()
            c()
            # tail
        """,
    ),
    case(
        "out_of_what_is_dropped_with_its_edits",
        """
        if x:
            # about a
            a(1)  # note
            b()
        c()
        """,
        lambda p: [
            Drop(p.statement("if")),
            Move(p.statement("a"), p.statement("c"), after=False),
            ReplaceExpression(p.expression("1"), "2"),
        ],
        """
        # about a
        a(2)  # note
        c()
        """,
    ),
    case(
        "out_of_what_is_hoisted_away",
        """
        if x:
            a()
        else:
            b()
        """,
        lambda p: [
            Hoist(p.statement("if"), "orelse"),
            Move(p.statement("a"), p.statement("b"), after=True),
        ],
        """
        b()
        a()
        """,
    ),
    case(
        "order_of_the_plan_at_one_anchor",
        """
        a()
        b()
        c()
        """,
        lambda p: [
            Insert(p.statement("c"), "d()", after=True),
            Move(p.statement("b"), p.statement("c"), after=True),
            Insert(p.statement("c"), "e()", after=True),
            Move(p.statement("a"), p.statement("c"), after=True),
        ],
        """
        c()
        d()
        b()
        e()
        a()
        """,
    ),
    case(
        "several_from_one_line",
        """
        a(); b(); c()  # note
        d()
        """,
        lambda p: [
            Move(p.statement("a"), p.statement("d"), after=True),
            Move(p.statement("c"), p.statement("d"), after=True),
            Drop(p.statement("b")),
        ],
        """
        d()
        a()
        c()  # note
        """,
    ),
    case(
        "replaced_on_the_way",
        """
        a()  # note
        b()
        """,
        lambda p: [
            Replace(p.statement("a"), "c()"),
            Move(p.statement("a"), p.statement("b"), after=True),
        ],
        """
        b()
        c()  # note
        """,
    ),
    case(
        "what_is_beside_it_comes_along",
        """
        a()
        b()
        c()
        """,
        lambda p: [
            Move(p.statement("a"), p.statement("b"), after=True),
            Insert(p.statement("a"), "d()", after=True),
            Move(p.statement("c"), p.statement("a"), after=False),
        ],
        """
        b()
        c()
        a()
        d()
        """,
    ),
    case(
        "elif_becomes_if",
        """
        if x:
            a()
        # about y
        elif y:
            b()
        c()
        """,
        lambda p: [Move(p.elif_("y"), p.statement("c"), after=True)],
        """
        if x:
            a()
        c()
        # about y
        if y:
            b()
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_move(before: str, plan: Plan, after: str) -> None:
    """Statements land where the plan says, comments with them."""
    assert applied(before, plan) == after
