"""Edits that do not fit the file or each other are refused with their name and place."""

from __future__ import annotations

import pytest

from amp_migrate.plan.model import (
    AddArgument,
    AddImport,
    AddImportedName,
    AddParameter,
    AddWithItem,
    Drop,
    DropBlock,
    DropImportedName,
    DropWithItem,
    Hoist,
    Insert,
    Move,
    Replace,
    ReplaceExpression,
    Wrap,
)
from amp_migrate.rewrite import EditError, rewrite
from amp_migrate.source.span import Span
from rewrite.places import Places, Plan

BEFORE = """
import a, b
x = f(1)
if c:
    g(2)
    h()
else:
    i()
with j:
    k()
"""

PLANS: dict[str, tuple[Plan, str]] = {
    "no_such_statement": (lambda p: [Drop(Span(2, 1, 2, 5))], "Drop at 2:1-2:5"),
    "stale_end": (lambda p: [Drop(p.statement("x")._replace(end_column=5))], "Drop at 3:0-3:5"),
    "no_such_expression": (
        lambda p: [ReplaceExpression(Span(3, 5, 3, 6), "y")],
        "ReplaceExpression at 3:5-3:6",
    ),
    "inside_a_replaced_statement": (
        lambda p: [Replace(p.statement("if"), "l()"), Insert(p.statement("h"), "m()", True)],
        "Insert at 6:4-6:7",
    ),
    "removal_inside_a_replaced_statement": (
        lambda p: [Replace(p.statement("if"), "l()"), Drop(p.statement("h"))],
        "Drop at 6:4-6:7",
    ),
    "inside_a_dropped_statement": (
        lambda p: [Drop(p.statement("if")), ReplaceExpression(p.expression("2"), "3")],
        "ReplaceExpression at 5:6-5:7",
    ),
    "inside_a_block_that_goes": (
        lambda p: [Hoist(p.statement("if"), "orelse"), Replace(p.statement("h"), "m()")],
        "Replace at 6:4-6:7",
    ),
    "in_the_test_of_a_hoisted_if": (
        lambda p: [Hoist(p.statement("if"), "orelse"), ReplaceExpression(p.expression("c"), "d")],
        "ReplaceExpression at 4:3-4:4",
    ),
    "inside_a_replaced_expression": (
        lambda p: [
            ReplaceExpression(p.expression("f(1)"), "y"),
            ReplaceExpression(p.expression("1"), "2"),
        ],
        "ReplaceExpression at 3:6-3:7",
    ),
    "argument_of_a_replaced_call": (
        lambda p: [ReplaceExpression(p.expression("f(1)"), "y"), AddArgument(p.call("f"), "2")],
        "AddArgument at 3:4-3:8",
    ),
    "two_replacements": (
        lambda p: [Replace(p.statement("x"), "y"), Replace(p.statement("x"), "z")],
        "Replace at 3:0-3:8",
    ),
    "dropped_and_moved": (
        lambda p: [Drop(p.statement("x")), Move(p.statement("x"), p.statement("with"), True)],
        "Move at 3:0-3:8",
    ),
    "moved_and_dropped": (
        lambda p: [Move(p.statement("x"), p.statement("with"), True), Drop(p.statement("x"))],
        "Drop at 3:0-3:8",
    ),
    "moved_twice": (
        lambda p: [
            Move(p.statement("x"), p.statement("with"), True),
            Move(p.statement("x"), p.statement("with"), False),
        ],
        "Move at 3:0-3:8",
    ),
    "moved_into_itself": (
        lambda p: [Move(p.statement("if"), p.statement("g"), True)],
        "Move at 4:0-8:7",
    ),
    "moved_around_each_other": (
        lambda p: [
            Move(p.statement("g"), p.statement("h"), True),
            Move(p.statement("h"), p.statement("g"), True),
        ],
        "Move at 5:4-5:8",
    ),
    "anchor_is_dropped_around": (
        lambda p: [Move(p.statement("x"), p.statement("g"), True), Drop(p.statement("if"))],
        "Move at 3:0-3:8",
    ),
    "wrap_across_blocks": (
        lambda p: [Wrap(p.statement("g"), p.statement("with"), "with w:")],
        "Wrap at 5:4-5:8",
    ),
    "wrap_backwards": (
        lambda p: [Wrap(p.statement("h"), p.statement("g"), "with w:")],
        "Wrap at 6:4-6:7",
    ),
    "wraps_cover_the_same": (
        lambda p: [
            Wrap(p.statement("x"), p.statement("x"), "with w:"),
            Wrap(p.statement("x"), p.statement("x"), "with v:"),
        ],
        "Wrap at 3:0-3:8",
    ),
    "wraps_overlap": (
        lambda p: [
            Wrap(p.statement("x"), p.statement("if"), "with w:"),
            Wrap(p.statement("if"), p.statement("with"), "with w:"),
        ],
        "Wrap at 4:0-8:7",
    ),
    "nothing_left_to_wrap": (
        lambda p: [Wrap(p.statement("x"), p.statement("x"), "with w:"), Drop(p.statement("x"))],
        "Wrap at 3:0-3:8",
    ),
    "header_is_no_header": (
        lambda p: [Wrap(p.statement("x"), p.statement("x"), "with w")],
        "Wrap at 3:0-3:8",
    ),
    "no_such_block": (lambda p: [Hoist(p.statement("with"), "orelse")], "Hoist at 9:0-10:7"),
    "no_blocks": (lambda p: [Hoist(p.statement("x"), "body")], "Hoist at 3:0-3:8"),
    "no_else": (lambda p: [DropBlock(p.statement("with"))], "DropBlock at 9:0-10:7"),
    "no_else_to_stay": (
        lambda p: [DropBlock(p.statement("with"), "body")],
        "DropBlock at 9:0-10:7",
    ),
    "no_such_name": (
        lambda p: [DropImportedName(p.statement("import"), ("c",))],
        "DropImportedName at 2:0-2:11",
    ),
    "no_names_to_add_to": (
        lambda p: [AddImportedName(p.statement("import"), "c")],
        "AddImportedName at 2:0-2:11",
    ),
    "not_an_import": (
        lambda p: [DropImportedName(p.statement("x"), ("c",))],
        "DropImportedName at 3:0-3:8",
    ),
    "not_a_function": (lambda p: [AddParameter(p.statement("x"), "s")], "AddParameter at 3:0-3:8"),
    "not_a_with": (lambda p: [AddWithItem(p.statement("if"), "s")], "AddWithItem at 4:0-8:7"),
    "no_other_item": (lambda p: [DropWithItem(p.statement("with"), 0)], "DropWithItem at 9:0-10:7"),
    "not_a_call": (lambda p: [AddArgument(p.expression("c"), "s")], "AddArgument at 4:3-4:4"),
    "text_does_not_parse": (lambda p: [Replace(p.statement("x"), "x =")], "Replace at 3:0-3:8"),
    "expression_does_not_parse": (
        lambda p: [ReplaceExpression(p.expression("1"), "1 +")],
        "ReplaceExpression at 3:6-3:7",
    ),
}


def test_unreadable_file_is_refused() -> None:
    """A file that does not parse is refused like an edit that does not fit."""
    with pytest.raises(EditError, match="the file does not parse"):
        rewrite("x = (", [AddImport("import a")])


@pytest.mark.parametrize("name", PLANS)
def test_refused(name: str) -> None:
    """The error names the edit and its place, and says why."""
    plan, message = PLANS[name]

    with pytest.raises(EditError, match=message) as raised:
        rewrite(BEFORE, plan(Places(BEFORE)))

    assert str(raised.value).startswith(f"{message}: ")
