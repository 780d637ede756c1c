"""Blocks in the place of their compound statement."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import (
    Drop,
    DropBlock,
    DropImportedName,
    Hoist,
    Replace,
    ReplaceExpression,
)
from rewrite.places import Plan, applied, case

CHAIN = """
    def f():
        if x:  # one
            a()
        # about y
        elif y:  # two
            b()
        # about the rest
        else:  # three
            c()
        # tail
        d()
"""

CASES = [
    case(
        "body_with_its_comments",
        """
        # above
        if args.fp16:  # why

            # first
            a()  # note

            b()
            # last
        c()
        """,
        lambda p: [Hoist(p.statement("if"), "body")],
        """
        # above
        # why
        # first
        a()  # note

        b()
        # last
        c()
        """,
    ),
    case(
        "comments_that_speak_of_apex_vanish",
        """
        if args.fp16:  # use amp
            a()
        else:  # no apex
            b()
        """,
        lambda p: [Hoist(p.statement("if"), "orelse")],
        """
        b()
        """,
    ),
    case(
        "directives_vanish_with_their_line",
        """
        if x:  # pragma: no cover
            a()  # noqa
        """,
        lambda p: [Hoist(p.statement("if"), "body")],
        """
        a()  # noqa
        """,
    ),
    case(
        "elif_becomes_if",
        CHAIN,
        lambda p: [Hoist(p.statement("if x"), "orelse")],
        """
        def f():
            # one
            # about y
            if y:  # two
                b()
            # about the rest
            else:  # three
                c()
            # tail
            d()
        """,
    ),
    case(
        "body_of_an_elif",
        CHAIN,
        lambda p: [Hoist(p.elif_("y"), "body")],
        """
        def f():
            if x:  # one
                a()
            # about y
            else:
                # two
                b()
            # tail
            d()
        """,
    ),
    case(
        "else_through_two_branches",
        CHAIN,
        lambda p: [Hoist(p.statement("if x"), "orelse"), Hoist(p.elif_("y"), "orelse")],
        """
        def f():
            # one
            # about y
            # two
            # about the rest
            # three
            c()
            # tail
            d()
        """,
    ),
    case(
        "one_line_suites",
        """
        if x: a(); b()  # note
        else: c()
        """,
        lambda p: [Hoist(p.statement("if"), "body")],
        """
        a(); b()  # note
        """,
    ),
    case(
        "blocks_of_a_try",
        """
        try:
            import a
        except ImportError:
            b()
        try:
            c()
        finally:
            d()
        """,
        lambda p: [
            Hoist(p.statement("try"), "handlers[0]"),
            Hoist(p.statement("try", 1), "finalbody"),
        ],
        """
        b()
        d()
        """,
    ),
    case(
        "emptied_or_pass",
        """
        def f():
            if x:
                a()
            if y:
                pass
            b()
        """,
        lambda p: [
            Hoist(p.statement("if x"), "body"),
            Drop(p.statement("a")),
            Hoist(p.statement("if y"), "body"),
        ],
        """
        def f():
            b()
        """,
    ),
    case(
        "edits_inside_and_removals_in_what_goes",
        """
        if x:
            from apex import amp
            b = 1
        else:
            loss.backward()  # note
        """,
        lambda p: [
            Hoist(p.statement("if"), "orelse"),
            Replace(p.statement("loss"), "scaler.scale(loss).backward()"),
            DropImportedName(p.statement("from"), ("amp",)),
        ],
        """
        scaler.scale(loss).backward()  # note
        """,
    ),
    case(
        "continued_lines_follow",
        """
        if x:
            a = 1 + \\
                2
            b = '''
            text
            '''
        """,
        lambda p: [Hoist(p.statement("if"), "body")],
        """
        a = 1 + \\
            2
        b = '''
            text
            '''
        """,
    ),
    case(
        "drop_else",
        """
        if x:
            a()
            # tail
        else:
            b()
        for i in y: c()
        else: d()
        try: e()
        except E: f()
        else: g()
        """,
        lambda p: [DropBlock(p.statement(s)) for s in ("if", "for", "try")],
        """
        if x:
            a()
            # tail
        for i in y: c()
        try: e()
        except E: f()
        """,
    ),
    case(
        "drop_else_of_an_elif",
        CHAIN,
        lambda p: [DropBlock(p.elif_("y"))],
        """
        def f():
            if x:  # one
                a()
            # about y
            elif y:  # two
                b()
            # tail
            d()
        """,
    ),
    case(
        "drop_body",
        """
        # above
        if x:  # one
            a()
        # about y
        elif y:  # two
            b()
        if x: a()
        else: b()
        if z:
            a()
        # about the rest
        else:  # rest
            b()
        """,
        lambda p: [
            *(DropBlock(p.statement("if", n), "body") for n in range(3)),
            ReplaceExpression(p.expression("x", 1), "not x"),
            ReplaceExpression(p.expression("z"), "not z"),
        ],
        """
        # above
        # one
        # about y
        if y:  # two
            b()
        if not x: b()
        # about the rest
        if not z:  # rest
            b()
        """,
    ),
    case(
        "drop_body_of_an_elif",
        CHAIN,
        lambda p: [
            DropBlock(p.elif_("y"), "body"),
            ReplaceExpression(p.expression("y"), "not y"),
        ],
        """
        def f():
            if x:  # one
                a()
            # about y
            # two
            # about the rest
            elif not y:  # three
                c()
            # tail
            d()
        """,
    ),
]


@pytest.mark.parametrize(("before", "plan", "after"), CASES)
def test_hoist(before: str, plan: Plan, after: str) -> None:
    """A block takes the place of its statement, comments with it."""
    assert applied(before, plan) == after
