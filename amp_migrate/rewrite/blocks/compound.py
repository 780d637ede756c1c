"""Clauses of compound statements: which block a hoist keeps, and what becomes of emptied ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from amp_migrate.plan.model import Hoist
from amp_migrate.rewrite.blocks.comments import comment_lines, header_comment, own_lines
from amp_migrate.rewrite.blocks.lines import Element, assemble, flat_suite, statements
from amp_migrate.rewrite.errors import EditError
from amp_migrate.rewrite.index import WithElse
from amp_migrate.rewrite.parts.imports import is_docstring

Clause = cst.Else | cst.Finally | cst.ExceptHandler | cst.ExceptStarHandler
WithBody = (
    cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar, cst.FunctionDef, cst.ClassDef,
    cst.ExceptHandler, cst.ExceptStarHandler, cst.MatchCase,
)  # fmt: skip


def kept_block(statement: cst.CSTNode, edit: Hoist) -> tuple[cst.BaseSuite | cst.If, list[str]]:
    """Return the block of a compound statement that a hoist keeps (an `If` where it is an ``elif``).

    With it come the comments of the lines that go, in order.
    """
    if not isinstance(statement, WithBody) or isinstance(statement, cst.MatchCase):
        raise EditError(edit, "the statement has no blocks")
    notes = header_comment(statement.body)
    if edit.block == "body":
        return statement.body, notes
    clause = _clause(statement, edit.block)
    if clause is None:
        raise EditError(edit, f"the statement has no {edit.block}")
    if isinstance(clause, cst.If):
        return clause, notes
    notes += comment_lines(clause.leading_lines)
    return clause.body, notes + header_comment(clause.body)


def _clause(statement: cst.CSTNode, block: str) -> Clause | cst.If | None:
    if block == "orelse" and isinstance(statement, WithElse):
        return statement.orelse
    if isinstance(statement, (cst.Try, cst.TryStar)):
        if block == "finalbody":
            return statement.finalbody
        number = re.fullmatch(r"handlers\[(\d+)\]", block)
        if number and int(number.group(1)) < len(statement.handlers):
            return statement.handlers[int(number.group(1))]
    return None


def suite_of(elements: Sequence[Element], unit: str | None, old: cst.BaseSuite) -> cst.BaseSuite:
    """Return a block of elements in place of `old`; one simple line stays on the line of its header."""
    body, footer = assemble(elements)
    if isinstance(old, cst.IndentedBlock):
        return old.with_changes(body=body, footer=footer)
    if not footer and len(body) <= 1 and isinstance(old, cst.SimpleStatementSuite):
        if not body:
            return old.with_changes(body=[], trailing_whitespace=cst.TrailingWhitespace())
        line = body[0]
        if isinstance(line, cst.SimpleStatementLine) and not line.leading_lines:
            return old.with_changes(body=line.body, trailing_whitespace=line.trailing_whitespace)
    return cst.IndentedBlock(body=body, footer=footer, indent=unit)


def is_empty(suite: cst.BaseSuite) -> bool:
    """Tell whether a block has lost its statements."""
    return not suite.body


def filled(suite: cst.BaseSuite) -> cst.BaseSuite:
    """Return a block with ``pass`` where it has lost its statements."""
    if not is_empty(suite):
        return suite
    if isinstance(suite, cst.IndentedBlock):
        line = cst.SimpleStatementLine([cst.Pass()], leading_lines=suite.footer)
        return suite.with_changes(body=[line], footer=())
    return suite.with_changes(body=[cst.Pass()])


def put_inside(
    statement: cst.CSTNode, elements: Sequence[Element], unit: str | None, *, top: bool
) -> cst.CSTNode:
    """Return a compound statement with elements at the top or the bottom of its body."""
    assert isinstance(statement, WithBody)
    present = flat_suite(statement.body)
    own = statements(present)
    if top:
        skip_first = isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and bool(own)
        at = present.index(own[0]) + 1 if skip_first and is_docstring(own[0]) else 0
    else:
        at = present.index(own[-1]) + 1 if own else len(present)
    body = suite_of([*present[:at], *elements, *present[at:]], unit, statement.body)
    return statement.with_changes(body=body)


def tidied(statement: cst.CSTNode) -> cst.CSTNode:
    """Return a compound statement without emptied ``else`` and ``finally``, other blocks with ``pass``.

    Comments of a clause that goes end the block before it.
    """
    if isinstance(statement, (cst.If, cst.For, cst.While)):
        orelse = statement.orelse
        if isinstance(orelse, cst.Else) and is_empty(orelse.body):
            body = _with_footer(filled(statement.body), _leftover(orelse))
            return statement.with_changes(body=body, orelse=None)
    if isinstance(statement, (cst.Try, cst.TryStar)):
        statement = _tidied_try(statement)
    if isinstance(statement, WithBody):
        return statement.with_changes(body=filled(statement.body))
    return statement


def with_branch(
    node: cst.If,
    lines: Sequence[cst.EmptyLine],
    elements: Sequence[Element],
    block: cst.IndentedBlock,
) -> cst.If:
    """Return an `if` with elements in place of its ``elif``, which had `lines` above it.

    `block` holds the elements as an ``else`` needs them.
    """
    body, footer = assemble(elements)
    if not body:
        comments = [line for line in [*lines, *footer] if line.comment is not None]
        return node.with_changes(orelse=None, body=_with_footer(filled(node.body), comments))
    only = body[0]
    if len(body) == 1 and not footer and isinstance(only, cst.If) and not only.leading_lines:
        return node.with_changes(orelse=only.with_changes(leading_lines=lines))
    return node.with_changes(orelse=cst.Else(leading_lines=lines, body=block))


def without_body(node: cst.If) -> cst.If:
    """Return an `if` without its first block: its ``elif`` in its place, or what stands in its ``else``."""
    rest = node.orelse
    assert rest is not None
    notes = own_lines([*header_comment(node.body), *comment_lines(rest.leading_lines)])
    kept = rest if isinstance(rest, cst.If) else node.with_changes(body=rest.body, orelse=None)
    return kept.with_changes(leading_lines=[*node.leading_lines, *notes])


def _tidied_try(statement: cst.CSTNode) -> cst.CSTNode:
    assert isinstance(statement, (cst.Try, cst.TryStar))
    changed = statement
    if isinstance(changed.orelse, cst.Else) and is_empty(changed.orelse.body):
        handler = changed.handlers[-1]
        body = _with_footer(handler.body, _leftover(changed.orelse))
        handlers = [*changed.handlers[:-1], handler.with_changes(body=body)]
        changed = changed.with_changes(orelse=None, handlers=handlers)
    final = changed.finalbody
    if final is None or not is_empty(final.body):
        return changed
    if not changed.handlers:
        return changed.with_changes(finalbody=final.with_changes(body=filled(final.body)))
    if changed.orelse is not None:
        body = _with_footer(changed.orelse.body, _leftover(final))
        return changed.with_changes(finalbody=None, orelse=changed.orelse.with_changes(body=body))
    handler = changed.handlers[-1]
    body = _with_footer(handler.body, _leftover(final))
    handlers = [*changed.handlers[:-1], handler.with_changes(body=body)]
    return changed.with_changes(finalbody=None, handlers=handlers)


def _leftover(clause: cst.Else | cst.Finally) -> list[cst.EmptyLine]:
    lines = own_lines([*comment_lines(clause.leading_lines), *header_comment(clause.body)])
    footer = clause.body.footer if isinstance(clause.body, cst.IndentedBlock) else ()
    return [*lines, *(line for line in footer if line.comment is not None)]


def _with_footer(suite: cst.BaseSuite, lines: list[cst.EmptyLine]) -> cst.BaseSuite:
    if not lines:
        return suite
    if isinstance(suite, cst.IndentedBlock):
        return suite.with_changes(footer=[*suite.footer, *lines])
    body, _ = assemble(flat_suite(suite))
    return cst.IndentedBlock(body=body, footer=lines)
