"""Tests whose branches become the same code by what is edited in them: ``model(x.half()) if`` fp16, else ``model(x)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Drop, Edit, Hoist, Insert, Replace, ReplaceExpression
from amp_migrate.project.order import position
from amp_migrate.rules.guards.cleanup import place_of
from amp_migrate.source.span import Span

_ASKS = (ast.Name, ast.Attribute, ast.BoolOp, ast.UnaryOp, ast.And, ast.Or, ast.Not, ast.Load)
_LOOKS = (*_ASKS, ast.Subscript, ast.Constant, ast.Compare, ast.cmpop)
_Text = Replace | ReplaceExpression


def one_branch(tree: Tree, before: str, edits: list[Edit]) -> list[Edit]:
    """Return the edits with those that let one branch of such a test take its place, and without those in the other.

    `before` is the text before Apex was spelt out in it, line by line.
    """
    changed = [e for e in edits if isinstance(e, ReplaceExpression)]
    edits = _one_import(tree, edits)
    spelt = tree.text != before
    lines = before.split("\n")
    for test in tree.nodes(ast.If) if changed or spelt else ():
        if not isinstance(test, ast.If) or not test.orelse or tree.is_elif(test):
            continue
        moved = (e.span for e in edits if isinstance(e, Hoist | Drop))
        if any(span.contains(tree.span(test)) for span in moved):
            continue
        parts = [tree.span(stmt) for stmt in (*test.body, *test.orelse)]
        end = test.end_lineno or test.lineno
        other = spelt and lines[test.lineno - 1 : end] != tree.lines[test.lineno - 1 : end]
        touched = other or any(_within(e, parts) for e in changed)
        if touched and _may_be_one(tree, test, edits):
            kept = _kept(tree, test, changed)
            if kept is not None:
                goes = [tree.span(stmt) for stmt in (test.orelse if kept == "body" else test.body)]
                edits = [e for e in edits if not _within(e, goes)]
                edits.append(Hoist(tree.span(test), kept))
    return _one_return(tree, edits)


def _one_import(tree: Tree, edits: list[Edit]) -> list[Edit]:
    """Return the edits with those that let a branch of imports take the place of its test, where the other one imports the same."""
    replaced = [e for e in edits if isinstance(e, Replace)]
    for test in tree.nodes(ast.If) if replaced else ():
        blocks = test.body, test.orelse
        whole = tree.span(test)
        around = [e for e in edits if isinstance(e, Insert) and e.span == whole]
        own = [e for e in edits if _within(e, [whole]) and e not in around]
        if not test.orelse or tree.is_elif(test) or not all(map(_is_plain, own)):
            continue
        if any("#" in line for line in tree.lines[whole.line - 1 : whole.end_line]):
            continue
        gone = {e.span for e in own if isinstance(e, Drop)}
        left = [[stmt for stmt in block if tree.span(stmt) not in gone] for block in blocks]
        if not all(block and all(map(_imports, block)) for block in left):
            continue
        body, orelse = (list(_edited(tree, b, [e for e in replaced if e in own])) for b in left)
        if body == orelse and all(isinstance(n, _ASKS) for n in ast.walk(test.test)):
            kept = "orelse" if len(left[1]) == len(test.orelse) else "body"
            goes = [tree.span(stmt) for stmt in (test.body if kept == "orelse" else test.orelse)]
            edits = [e for e in edits if not _within(e, goes)]
            edits.append(Hoist(whole, kept))
    return edits


def _is_plain(edit: Edit) -> bool:
    return isinstance(edit, Replace | Drop)


def _imports(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Import | ast.ImportFrom)


def _one_return(tree: Tree, edits: list[Edit]) -> list[Edit]:
    """Return the edits with those that take away a test which only returns what is returned right behind it, both longer now."""
    changed = [e for e in edits if isinstance(e, _Text)]
    for test in tree.nodes(ast.If):
        rest = tree.block(test)[position(tree, test) + 1 :]
        alone = len(test.body) == 1 and isinstance(test.body[0], ast.Return) and not test.orelse
        if not alone or not rest or not isinstance(rest[0], ast.Return) or tree.is_elif(test):
            continue
        whole, parts = tree.span(test), [tree.span(test.body[0]), tree.span(rest[0])]
        own = [e for e in changed if _within(e, parts)]
        if any(_within(e, parts[:1]) for e in own) and _may_go(tree, test, edits):
            if list(_edited(tree, test.body, own)) == list(_edited(tree, rest[:1], own)):
                edits = [e for e in edits if isinstance(e, Insert) or not _within(e, [whole])]
                edits.append(Drop(whole))
    return edits


def _may_go(tree: Tree, test: ast.If, edits: Sequence[Edit]) -> bool:
    """Tell whether a test only reads a flag, with nothing told beside it, and only expressions of it are edited."""
    if not all(isinstance(n, _LOOKS) for n in ast.walk(test.test)):
        return False
    whole = tree.span(test)
    others = [e for e in edits if not isinstance(e, _Text)]
    held = any(
        _within(e, [whole]) and not (isinstance(e, Insert) and e.span == whole and not e.after)
        for e in others
    )
    return not held and not any("#" in line for line in tree.lines[whole.line - 1 : whole.end_line])


def _may_be_one(tree: Tree, test: ast.If, edits: Sequence[Edit]) -> bool:
    """Tell whether a test only reads a flag, and nothing but expressions of its branches is edited."""
    if not all(isinstance(n, _ASKS) for n in ast.walk(test.test)):
        return False
    parts = [tree.span(stmt) for stmt in (*test.body, *test.orelse)]
    lines = tree.lines[test.orelse[0].lineno - 1 : test.orelse[-1].end_lineno]
    whole = tree.span(test)
    others = (e for e in edits if not isinstance(e, ReplaceExpression))
    held = any(_within(e, parts) or getattr(e, "span", None) == whole for e in others)
    return not held and not any("#" in line for line in lines)


def _kept(tree: Tree, test: ast.If, changed: Sequence[ReplaceExpression]) -> str | None:
    """Return the branch that stays, the one with fewer edits, where both come out the same."""
    body, orelse = (list(_edited(tree, block, changed)) for block in (test.body, test.orelse))
    if body != orelse or not body:
        return None
    spans = [[tree.span(stmt) for stmt in block] for block in (test.body, test.orelse)]
    counts = [sum(_within(e, block) for e in changed) for block in spans]
    return "body" if counts[0] <= counts[1] else "orelse"


def _edited(tree: Tree, block: list[ast.stmt], changed: Sequence[_Text]) -> Iterator[str]:
    """Yield the statements of a block as they read once they are edited."""
    for stmt in block:
        span = tree.span(stmt)
        lines = tree.lines[span.line - 1 : span.end_line]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = " " * span.column + lines[0][span.column :]
        text = "\n".join(lines)
        for edit in sorted((e for e in changed if span.contains(e.span)), reverse=True, key=_at):
            line, column, end_line, end_column = edit.span
            start, end = (
                _offset(text, line - span.line, column),
                _offset(text, end_line - span.line, end_column),
            )
            text = text[:start] + edit.text + text[end:]
        try:
            yield ast.dump(ast.parse(f"if True:\n{text}" if span.column else text))
        except SyntaxError:
            yield f"{span}"


def _at(edit: _Text) -> Span:
    return edit.span


def _offset(text: str, line: int, column: int) -> int:
    """Return where a column of a line of a text stands in it."""
    return sum(map(len, text.splitlines(keepends=True)[:line])) + column


def _within(edit: Edit, spans: Sequence[Span]) -> bool:
    place = place_of(edit)
    return place is not None and any(span.contains(place) for span in spans)
