"""Tests and guards that a plan leaves empty go with their last statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import takewhile

from amp_migrate.facts.below import blocks
from amp_migrate.facts.paths import acts
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import (
    AddArgument,
    Drop,
    DropBlock,
    DropImportedName,
    Edit,
    Hoist,
    Insert,
    Move,
    Replace,
    ReplaceExpression,
)
from amp_migrate.rules.guards.emptied import does_nothing, folded
from amp_migrate.source.span import Span


def tidied(tree: Tree, edits: list[Edit]) -> list[Edit]:
    """Return the edits with those that remove what they leave without a statement.

    What would be edited in the head of such a statement is left out.
    """
    edits = _outside_dropped(tree, edits)
    drops = list(emptied(tree, edits))
    edits, drops = _in_place(tree, edits, drops)
    return [e for e in edits if not any(_inside(e, drop) for drop in drops)] + drops


def _outside_dropped(tree: Tree, edits: list[Edit]) -> list[Edit]:
    """Leave out what would be edited in a statement that goes as a whole, or with its branch of a test."""
    spans = {e.span for e in edits if isinstance(e, Drop)}
    branches = list(_branches_gone(tree, {e.span: e.block for e in edits if isinstance(e, Hoist)}))
    return [
        e
        for e in edits
        if not any(s != place_of(e) and within(e, s) for s in spans)
        and (_leaves(e, branches) or not any(within(e, s) for s in branches))
    ]


def _leaves(edit: Edit, spans: list[Span]) -> bool:
    """Tell whether an edit moves a statement to where none of some places is."""
    return isinstance(edit, Move) and not any(span.contains(edit.anchor) for span in spans)


def _branches_gone(tree: Tree, kept: dict[Span, str]) -> Iterator[Span]:
    """Yield the statements of the branch of a test that goes as the other one takes its place."""
    for test in tree.nodes(ast.If) if kept else ():
        block = kept.get(tree.span(test))
        if block is not None and isinstance(test, ast.If):
            yield from map(tree.span, test.orelse if block == "body" else test.body)


def place_of(edit: Edit) -> Span | None:
    """Return where an edit is made: its statement, expression or call, or the first of several statements."""
    return next(
        (at for name in ("span", "call", "first") if (at := getattr(edit, name, None)) is not None),
        None,
    )


def _in_place(tree: Tree, edits: list[Edit], drops: list[Edit]) -> tuple[list[Edit], list[Edit]]:
    """Let what is inserted before an emptied guard replace it, so that comments above that fit stay."""
    kept: list[Edit] = []
    for drop in drops:
        beside = [
            e
            for e in edits
            if isinstance(e, Insert) and isinstance(drop, Drop) and e.span == drop.span
        ]
        fits = isinstance(drop, Drop) and "apex" not in _comment_above(tree, drop.span).lower()
        if len(beside) == 1 and isinstance(drop, Drop) and fits and not _moves_out(edits, drop):
            edits = [e for e in edits if e is not beside[0] and not within(e, drop.span)]
            kept.append(Replace(drop.span, beside[0].text))
        else:
            kept.append(drop)
    spans = [e.span for e in kept if isinstance(e, Replace)]
    kept = [e for e in kept if isinstance(e, Replace) or not any(within(e, span) for span in spans)]
    return edits, kept


def _comment_above(tree: Tree, span: Span) -> str:
    line = span.line - 1
    while line and tree.lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return "\n".join(tree.lines[line : span.line - 1])


def within(edit: Edit, span: Span) -> bool:
    """Tell whether an edit lies in a span."""
    place = place_of(edit)
    return place is not None and span.contains(place)


def _moves_out(edits: list[Edit], drop: Drop) -> bool:
    return any(isinstance(e, Move) and drop.span.contains(e.span) for e in edits)


def _inside(edit: Edit, drop: Edit) -> bool:
    if not isinstance(edit, ReplaceExpression | Hoist | AddArgument) or not isinstance(drop, Drop):
        return False
    span = edit.call if isinstance(edit, AddArgument) else edit.span
    return drop.span.contains(span)


def emptied(tree: Tree, edits: list[Edit]) -> Iterator[Edit]:
    """Yield the edits that remove what the other edits of a file leave without a statement."""
    gone = {e.span for e in edits if isinstance(e, Drop | Move)}
    gone |= {e.span for e in edits if isinstance(e, Replace) and not e.text.strip()}
    gone |= set(_imports_gone(tree, edits))
    taken = {e.span for e in edits if isinstance(e, DropBlock) and e.block == "orelse"}
    hoisted = {e.span: e.block for e in edits if isinstance(e, Hoist)}
    found = _Emptied(tree, gone, taken, hoisted, edits)
    for stmt in tree.module.body:
        found.visit(stmt)
    yield from found.edits


def _imports_gone(tree: Tree, edits: list[Edit]) -> Iterator[Span]:
    """Yield the imports of which every name goes."""
    names: dict[Span, set[str]] = {}
    for edit in edits:
        if isinstance(edit, DropImportedName):
            names.setdefault(edit.span, set()).update(edit.names)
    for node in tree.nodes(ast.Import, ast.ImportFrom) if names else ():
        assert isinstance(node, ast.Import | ast.ImportFrom)
        if names.get(tree.span(node), set()).issuperset(a.name for a in node.names):
            yield tree.span(node)


def _imports(tree: Tree) -> set[Span]:
    return set(map(tree.span, tree.nodes(ast.Import, ast.ImportFrom)))


class _Emptied:
    def __init__(
        self,
        tree: Tree,
        gone: set[Span],
        taken: set[Span],
        hoisted: dict[Span, str],
        edits: list[Edit],
    ) -> None:
        self._tree = tree
        self._gone = gone
        self._taken = taken
        self._hoisted = hoisted
        self._switched = {
            e.span for e in edits if isinstance(e, Replace) and e.span in _imports(tree)
        }
        self._edited = [place for e in edits if (place := place_of(e)) is not None]
        self._beside = list(_coming(edits))
        self._coming = [at for at, _ in self._beside]
        self.edits: list[Edit] = []

    def visit(self, stmt: ast.stmt) -> bool:
        """Return whether a statement leaves nothing behind; record what has to be dropped for that."""
        if not hasattr(stmt, "body"):
            return self._tree.span(stmt) in self._gone
        span = self._tree.span(stmt)
        if span in self._gone:
            return True
        states = [[self.visit(s) for s in block] for block in blocks(stmt)]
        if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef):
            self._returning(stmt.body)
        if span in self._hoisted:
            if not isinstance(stmt, ast.If):
                return False
            kept = stmt.orelse if self._hoisted[span] == "orelse" else stmt.body
            return all(self._tree.span(s) in self._gone for s in kept) and self._drop(span)
        switched = isinstance(stmt, ast.Try) and any(map(self._is_switched, stmt.body))
        if span in self._taken or not (switched or any(map(any, states))):
            return False
        if isinstance(stmt, ast.Try):
            return self._try(stmt, span)
        if isinstance(stmt, ast.For):
            gone = all(map(self._is_gone, stmt.body)) and does_nothing(self._tree, stmt)
            return gone and self._drop(span)
        return isinstance(stmt, ast.If) and self._test(stmt, span)

    def _returning(self, body: list[ast.stmt]) -> None:
        """Drop the test at the end of a function that only kept from what goes behind it: ``if not fp16: return``."""
        behind = list(takewhile(lambda s: self._tree.span(s) in self._gone, reversed(body)))
        if not behind or len(behind) == len(body):
            return
        test = body[-len(behind) - 1]
        alone = test.body[0] if isinstance(test, ast.If) and len(test.body) == 1 else None
        if not isinstance(test, ast.If) or test.orelse or acts(test.test, ast.Call):
            return
        if not isinstance(alone, ast.Return) or alone.value is not None or self._fills(test.body):
            return
        whole, inner = self._tree.span(test), [*map(self._tree.span, (alone, *behind))]
        stays = len(body) > len(behind) + 1 or (whole, False) in self._beside
        if stays and not any(at in inner or (at == whole and after) for at, after in self._beside):
            self._drop(whole)

    def _is_gone(self, stmt: ast.stmt) -> bool:
        span = self._tree.span(stmt)
        return span in self._gone or isinstance(stmt, ast.Pass)

    def _try(self, stmt: ast.Try, span: Span) -> bool:
        if stmt.orelse or stmt.finalbody:
            return False
        if all(map(self._is_gone, stmt.body)):
            return self._drop(span)
        if self._only_guarded(stmt):
            self.edits.append(Hoist(span, "body"))
        return False

    def _only_guarded(self, stmt: ast.Try) -> bool:
        """Tell whether a `try` only handled the failure of imports that go: nothing in it imports any more."""
        switched = [s for s in stmt.body if self._is_switched(s)]
        stays = [s for s in stmt.body if not self._is_gone(s) and s not in switched]
        goes = [s for s in stmt.body if self._tree.span(s) in self._gone] + switched
        handled = [part for handler in stmt.handlers for part in handler.body]
        if switched and not all(isinstance(s, ast.Raise | ast.Expr | ast.Pass) for s in handled):
            return False
        return (
            any(isinstance(s, ast.Import | ast.ImportFrom) for s in goes)
            and all(_names_import_error(handler.type) for handler in stmt.handlers)
            and not any(isinstance(n, _IMPORTS) for s in stays for n in ast.walk(s))
            and not any(self._tree.span(s).contains(at) for s in handled for at in self._edited)
        )

    def _is_switched(self, stmt: ast.stmt) -> bool:
        """Tell whether a statement is an import in whose place a name is set: ``amp = True``."""
        return self._tree.span(stmt) in self._switched

    def _test(self, stmt: ast.If, span: Span) -> bool:
        if not all(map(self._is_gone, stmt.body)):
            return False
        if not stmt.orelse or all(map(self._is_gone, stmt.orelse)):
            return self._drop(span)
        if not self._fills(stmt.body):
            self.edits += folded(self._tree, stmt, self._edited)
        return False

    def _fills(self, block: list[ast.stmt]) -> bool:
        """Tell whether something comes into a block that is left without its statements, or a comment in it stays."""
        first, last = self._tree.span(block[0]), self._tree.span(block[-1])
        span = Span(first.line, first.column, last.end_line, last.end_column)
        lines = (line.strip() for line in self._tree.lines[first.line - 1 : last.end_line])
        said = any(line.startswith("#") and "apex" not in line.lower() for line in lines)
        return said or any(span.contains(at) for at in self._coming)

    def _drop(self, span: Span) -> bool:
        self._gone.add(span)
        self.edits.append(Drop(span))
        return True


def _coming(edits: list[Edit]) -> Iterator[tuple[Span, bool]]:
    """Yield the statements beside which others come to stand, and whether behind them."""
    for edit in edits:
        if isinstance(edit, Insert | Move):
            yield edit.span if isinstance(edit, Insert) else edit.anchor, edit.after


_IMPORTS = (ast.Import, ast.ImportFrom)


def _names_import_error(node: ast.expr | None) -> bool:
    names = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(
        isinstance(n, ast.Name) and n.id in ("ImportError", "ModuleNotFoundError") for n in names
    )
