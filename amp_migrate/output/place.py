"""Where a finding stands in the file as it is after the run."""

from __future__ import annotations

from dataclasses import dataclass

from amp_migrate.align import Change, changes, moved_line
from amp_migrate.plan import Finding
from amp_migrate.report import Report


@dataclass(frozen=True, slots=True)
class Where:
    """A place as people count: lines and columns from 1; `cell` is that of a notebook."""

    path: str
    cell: int | None
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{self.path}:{cell}{self.line}:{self.column}"


class Places:
    """The places of a report's findings."""

    def __init__(self, report: Report) -> None:
        self._sources = report.sources
        changed = report.changes if report.written else []
        self._after = {change.path: change.text for change in changed}
        self._moves: dict[str, list[Change]] = {}

    def of(self, finding: Finding) -> Where:
        """Return the place of a finding; in a notebook that was written, its place before."""
        span = finding.span
        place = self._sources[finding.path].place(span)
        line, end_line = place.line, place.end_line
        if place.cell is None and finding.path in self._after:
            moves = self._differences(finding.path)
            line, end_line = (moved_line(at - 1, moves) + 1 for at in (line, end_line))
        columns = span.column + 1, span.end_column + 1
        return Where(finding.path, place.cell, line, columns[0], max(line, end_line), columns[1])

    def _differences(self, path: str) -> list[Change]:
        if path not in self._moves:
            old, new = self._sources[path].text, self._after[path]
            self._moves[path] = changes(old.split("\n"), new.split("\n"))
        return self._moves[path]
