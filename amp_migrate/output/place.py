"""Where a finding stands in the file as it is after the run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amp_migrate.report import Report
from amp_migrate.source.align import Change, changes, moved_line
from amp_migrate.source.file import Source
from amp_migrate.source.span import Span

if TYPE_CHECKING:
    from amp_migrate.plan.model import Finding, Place


@dataclass(frozen=True, slots=True)
class Where:
    """A place as people count: lines and columns from 1; `cell` is that of a notebook.

    The lines of a notebook count from the start of the cell; `in_file` are those of the file itself.
    """

    path: str
    cell: int | None
    line: int
    column: int
    end_line: int
    end_column: int
    in_file: tuple[int, int]

    def __str__(self) -> str:
        return f"{shown(self.path)}:{self.number}:{self.column}"

    @property
    def number(self) -> str:
        """The line, with the cell where there is one."""
        return str(self.line) if self.cell is None else f"cell {self.cell}:{self.line}"

    @property
    def line_of(self) -> str:
        """The line in words, for who knows the file."""
        cell = "" if self.cell is None else f"cell {self.cell} "
        return f"{cell}line {self.line}"


def shown(path: str) -> str:
    """Return a path as people read it: from the working directory."""
    if not Path(path).is_absolute():
        return path
    try:
        return os.path.relpath(path)
    except ValueError:
        return path


class Places:
    """The places of a report's findings: in a run that wrote, those in the files as they are now."""

    def __init__(self, report: Report) -> None:
        self._sources = report.sources
        self._after = {c.path: c for c in report.changes} if report.written else {}
        self._moves: dict[str, tuple[list[Change], Source]] = {}

    def of(self, finding: Finding) -> Where:
        """Return the place of a finding."""
        return self.at(finding.place)

    def at(self, place: Place) -> Where:
        """Return where a place of a file that was read stands now."""
        span, source = place.span, self._sources[place.path]
        if place.path in self._after:
            moves, source = self._moved(place.path)
            first, last = (moved_line(at - 1, moves) + 1 for at in (span.line, span.end_line))
            span = Span(first, span.column, max(first, last), span.end_column)
        here = source.place(span)
        columns = span.column + 1, span.end_column + 1
        return Where(
            place.path, here.cell, here.line, columns[0], here.end_line, columns[1], here.in_file
        )

    def said(self, finding: Finding) -> tuple[str, str]:
        """Return the message and the advice of a finding, which name other places as they are now."""
        message, advice = finding.message, finding.advice
        for place in finding.named:
            where = self.at(place)
            other = place.path != finding.path
            text = f"{shown(place.path)}:{where.number}" if other else where.line_of
            message, advice = (part.replace(str(place), text) for part in (message, advice))
        return message, advice

    def _moved(self, path: str) -> tuple[list[Change], Source]:
        if path not in self._moves:
            change = self._after[path]
            after = Source.from_bytes(path, change.after)
            old, new = self._sources[path].text, after.text
            self._moves[path] = changes(old.split("\n"), new.split("\n")), after
        return self._moves[path]
