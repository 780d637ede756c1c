"""Which lines no edit of a plan touches: they have to be there afterwards."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable

from amp_migrate.plan.model import Edit
from amp_migrate.source.span import Span


def lost(before: str, after: str, edits: Iterable[Edit]) -> str:
    """Return a line outside all edits that `after` lacks; empty where there is none.

    A test whose body goes, a variable that it read, and the comment above what goes may go with it.
    """
    touched = {number for edit in edits for number in _lines(edit)}
    kept = [
        line
        for number, line in enumerate(before.split("\n"), start=1)
        if number not in touched and not line.strip().startswith(("if ", "else:", "#"))
    ]
    missing = Counter(kept) - Counter(after.split("\n"))
    return next((line for line in missing if line.strip() and not _unread(line, after)), "")


def _unread(line: str, after: str) -> bool:
    """Tell whether a line only set a variable that nothing has any more."""
    name = re.match(r"\s*(\w+) = ", line)
    return name is not None and re.search(rf"\b{name[1]}\b", after) is None


def _lines(edit: Edit) -> Iterable[int]:
    values = [getattr(edit, field.name) for field in dataclasses.fields(edit)]
    spans = [value for value in values if isinstance(value, Span)]
    if len(spans) == 2 and spans[0] < spans[1]:
        return range(spans[0].line, spans[1].end_line + 1)
    return [n for span in spans for n in range(span.line, span.end_line + 1)]
