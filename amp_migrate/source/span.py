"""Where a piece of source stands."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A range of source text: lines count from 1, columns from 0 in characters (not bytes)."""

    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: Span) -> bool:
        """Tell whether `other` lies inside this span (or is the same)."""
        return (self.line, self.column) <= (other.line, other.column) and (
            other.end_line,
            other.end_column,
        ) <= (self.end_line, self.end_column)

    def until(self, other: Span) -> Span:
        """Return the range from where this one begins to where `other` ends."""
        return Span(self.line, self.column, other.end_line, other.end_column)
