"""Which places of a file other edits leave as they are, so that more edits may be made there."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Drop, DropBlock, Edit, Hoist, Replace, ReplaceExpression
from amp_migrate.source.span import Span


class Untouched:
    """Answers, for one file and the edits planned for it, what still stands afterwards."""

    def __init__(self, tree: Tree, edits: Sequence[Edit]) -> None:
        self._tree = tree
        self._edits = edits
        heads = {e.span for e in edits if isinstance(e, Hoist | DropBlock)}
        kinds = (ast.If, ast.Try, ast.With, ast.For, ast.While)
        self._compound = {tree.span(n): n for n in tree.nodes(*kinds)} if heads else {}

    def stands(self, node: ast.AST) -> bool:
        """Tell whether no edit removes or rewrites what holds a node."""
        span = self._tree.span(node)
        return not any(self._takes(edit, span) for edit in self._edits)

    def writes(self, name: str) -> bool:
        """Tell whether the text of an edit says a name."""
        word = re.compile(rf"(?<![\w.]){re.escape(name)}\b")
        texts = (getattr(e, "text", "") + getattr(e, "header", "") for e in self._edits)
        return any(word.search(text) for text in texts)

    def _takes(self, edit: Edit, span: Span) -> bool:
        if isinstance(edit, Drop | Replace | ReplaceExpression):
            return edit.span.contains(span)
        if isinstance(edit, Hoist):
            return edit.span.contains(span) and not self._within(edit.span, edit.block, span)
        return isinstance(edit, DropBlock) and self._within(edit.span, edit.block, span)

    def _within(self, head: Span, block: str, span: Span) -> bool:
        stmt = self._compound.get(head)
        if stmt is None:
            return False
        if block.startswith("handlers"):
            handlers = stmt.handlers if isinstance(stmt, ast.Try) else []
            body = handlers[int(block[len("handlers[") : -1])].body
        else:
            body = [s for name, s in _blocks(stmt) if name == block]
        return any(self._tree.span(s).contains(span) for s in body)


def _blocks(stmt: ast.stmt) -> list[tuple[str, ast.stmt]]:
    return [
        (name, child)
        for name, value in ast.iter_fields(stmt)
        if isinstance(value, list)
        for child in value
        if isinstance(child, ast.stmt)
    ]
