"""Statements removed, and what becomes of the blocks they leave."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import Drop
from rewrite.places import Plan, applied, case

CASES = [
    case(
        "comments_of_others_stay_those_of_apex_go",
        """
        a()
        # data
        # apex: initialize
        b()  # amp
        c()
        """,
        lambda p: [Drop(p.statement("b"))],
        """
        a()
        # data
        c()
        """,
    ),
    case(
        "larger_run_of_blank_lines_stays",
        """
        a()

        b()


        def c(): pass
        """,
        lambda p: [Drop(p.statement("b"))],
        """
        a()


        def c(): pass
        """,
    ),
    case(
        "no_blank_line_at_the_top_of_a_block",
        """
        def f():
            a()

            b()

            c()
        """,
        lambda p: [Drop(p.statement("a")), Drop(p.statement("c"))],
        """
        def f():
            b()
        """,
    ),
    case(
        "first_statement_below_a_license",
        """
        # license

        from apex import amp

        import torch
        """,
        lambda p: [Drop(p.statement("from"))],
        """
        # license

        import torch
        """,
    ),
    case(
        "comment_at_the_top_of_a_block_speaks_of_what_imports_led_to",
        """
        if x:
            # processes
            try:
                from apex.parallel import Wrapper
            except ImportError:
                raise

            b()
        if y:
            # steps
            a()

            c()
        if z:
            d()
            # kept apart
            import apex

            e()
        # the head of the file
        from apex import amp

        f()
        """,
        lambda p: [
            Drop(p.statement(s)) for s in ("try", "a()", "import apex", "from apex import amp")
        ],
        """
        if x:
            # processes
            b()
        if y:
            # steps

            c()
        if z:
            d()
            # kept apart

            e()
        # the head of the file

        f()
        """,
    ),
    case(
        "emptied_body_gets_pass_else_goes",
        """
        if x:
            a()
        else:  # why
            b()
            # tail
        for i in y:
            # note
            c()
        """,
        lambda p: [Drop(p.statement(s)) for s in ("a", "b", "c")],
        """
        if x:
            pass
            # why
            # tail
        for i in y:
            # note
            pass
        """,
    ),
    case(
        "emptied_finally_goes_unless_try_needs_it",
        """
        try:
            a()
        except E:
            b()
        finally:
            c()
        try:
            d()
        finally:
            e()
        """,
        lambda p: [Drop(p.statement(s)) for s in ("b", "c()", "e()")],
        """
        try:
            a()
        except E:
            pass
        try:
            d()
        finally:
            pass
        """,
    ),
    case(
        "emptied_else_of_try_goes",
        """
        try:
            a()
        except E:
            b()
        else:
            c()
        finally:
            d()
        """,
        lambda p: [Drop(p.statement("c()")), Drop(p.statement("d()"))],
        """
        try:
            a()
        except E:
            b()
        """,
    ),
    case(
        "one_of_several_on_a_line",
        """
        a(); b(); c()  # note
        if x: d(); e()
        else: f()
        """,
        lambda p: [Drop(p.statement(s)) for s in ("c()", "d()", "f()")],
        """
        a(); b()  # note
        if x: e()
        """,
    ),
    case(
        "all_on_a_line",
        """
        a(); b();  # note
        if x: c()  # gone
        """,
        lambda p: [Drop(p.statement(s)) for s in ("a", "b", "c")],
        """
        if x: pass
        """,
    ),
    case(
        "elif_takes_the_rest_of_the_chain",
        """
        if x:
            a()
        # about y
        elif y:
            b()
        else:
            c()
        """,
        lambda p: [Drop(p.elif_("y"))],
        """
        if x:
            a()
            # about y
        """,
    ),
    case(
        "outer_drop_wins",
        """
        if x:
            a()
        b()
        """,
        lambda p: [Drop(p.statement("if")), Drop(p.statement("a"))],
        """
        b()
        """,
    ),
    case(
        "decorators_go_with_their_function",
        """
        a()


        @d
        # why
        def f():
            pass


        b()
        """,
        lambda p: [Drop(p.statement("def"))],
        """
        a()


        b()
        """,
    ),
    case(
        "body_of_a_case",
        """
        match x:
            case 1:
                a()
            case _: b()
        """,
        lambda p: [Drop(p.statement("a")), Drop(p.statement("b"))],
        """
        match x:
            case 1:
                pass
            case _: pass
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_drop(before: str, plan: Plan, after: str) -> None:
    """Only the lines of the edit change, as if by hand."""
    assert applied(before, plan) == after


def test_columns_count_characters() -> None:
    """Text that is not ASCII on the line of an edit does not shift it."""
    before = 'é = "ü"; a(é); b()\n'

    assert applied(before, lambda p: [Drop(p.statement("a"))]) == 'é = "ü"; b()\n'
