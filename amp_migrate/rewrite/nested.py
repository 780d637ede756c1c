"""Expressions that edits replace inside of what another edit replaces, where that keeps them as they are."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from amp_migrate.plan.model import Edit, ReplaceExpression
from amp_migrate.source.span import Span

_ATOMS = ast.Attribute | ast.Call | ast.Constant | ast.Name | ast.Subscript


def joined(text: str, edits: Sequence[Edit]) -> list[Edit]:
    """Return edits with each new expression put into the larger one around it, if what it replaces stands there once."""
    lines = text.split("\n")
    every = [edit for edit in edits if isinstance(edit, ReplaceExpression)]
    times = Counter(edit.span for edit in every)
    put = {edit.span: edit for edit in every if times[edit.span] == 1}
    gone: set[Span] = set()
    for span in sorted(put, key=lambda s: len(_text(lines, s))):
        around = [s for s in put if s != span and s.contains(span)]
        outer = min(around, key=lambda s: len(_text(lines, s)), default=None)
        old = re.compile(rf"(?<![\w.]){re.escape(_text(lines, span))}(?!\w)")
        if outer is None or len(old.findall(_text(lines, outer))) != 1:
            continue
        parts = old.split(put[outer].text)
        if len(parts) == 2:
            put[outer] = replace(put[outer], text=_atom(put[span].text).join(parts))
            gone.add(span)
    return [
        put.get(edit.span, edit) if isinstance(edit, ReplaceExpression) else edit
        for edit in edits
        if not isinstance(edit, ReplaceExpression) or edit.span not in gone
    ]


def _text(lines: list[str], span: Span) -> str:
    """Return the text at a span."""
    held = lines[span.line - 1 : span.end_line]
    held[-1] = held[-1][: span.end_column]
    held[0] = held[0][span.column :]
    return "\n".join(held)


def _atom(text: str) -> str:
    """Return an expression so that it stays one wherever it is put."""
    whole = ast.parse(f"({text}\n)", mode="eval").body
    return text if isinstance(whole, _ATOMS) and "\n" not in text else f"({text})"
