"""Lines that a decision about another place changes: they refer to its reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from amp_migrate.plan.model import AddImport, Decision, Edit, Finding
from amp_migrate.source.span import Span

Echoes = dict[int, list[Finding]]
"""The findings of decisions that change a line of a file, lines counted from 0."""


def echoes(decisions: Iterable[Decision]) -> dict[str, Echoes]:
    """Return by file which decisions change each line, where they speak of another line or file."""
    found: dict[str, Echoes] = defaultdict(lambda: defaultdict(list))
    for decision in decisions:
        finding = decision.finding
        for path, edit in decision.edits:
            span = _where(edit)
            if span is not None and (path, span.line) != (finding.path, finding.span.line):
                found[path][span.line - 1].append(finding)
    return found


def _where(edit: Edit) -> Span | None:
    """Return the place of an edit in the text before; an import that is added has none."""
    if isinstance(edit, AddImport):
        return None
    for name in ("span", "first", "call", "function"):
        span = getattr(edit, name, None)
        if isinstance(span, Span):
            return span
    return None
