"""Names and addresses on the page: short paths, line numbers as the file has them, anchors."""

from __future__ import annotations

from html import escape
from pathlib import Path

from amp_migrate.plan.model import Finding
from amp_migrate.report import Report
from amp_migrate.source.span import Span


class Addresses:
    """Where everything stands on the page; paths are shown from `root`."""

    def __init__(self, report: Report, root: Path) -> None:
        self._sources = report.sources
        self._root = root
        told = {item.path for item in report.findings} | {change.path for change in report.changes}
        self._numbers = {path: at for at, path in enumerate(sorted(told), 1)}

    def name(self, path: str) -> str:
        """Return the path as it is shown."""
        return _short(path, self._root)

    def file(self, path: str) -> str:
        """Return the anchor of a file."""
        return f"file{self._numbers.get(path, 0)}"

    def line(self, path: str, line: int) -> str:
        """Return the anchor of a line of the file before."""
        return f"{self.file(path)}-{line}"

    def number(self, path: str, line: int) -> str:
        """Return a line as people count: in a notebook the cell, then the line in it."""
        source = self._sources.get(path)
        if source is None or not path.endswith(".ipynb"):
            return str(line)
        place = source.place(Span(line, 0, line, 0))
        return f"{place.cell}:{place.line}"

    def link(self, path: str, line: int, text: str = "") -> str:
        """Return a link to a line of a file; by default its text names both."""
        number = self.number(path, line)
        shown = text or f"{self.name(path)}:{number}"
        return f'<a href="#{self.line(path, line)}">{escape(shown)}</a>'

    def said(self, item: Finding) -> tuple[str, str]:
        """Return the message and the advice of a finding, with the names of places as they are shown."""
        message, advice = item.message, item.advice
        for place in item.named:
            number = self.number(place.path, place.span.line)
            here = place.path == item.path
            text = f"line {number}" if here else f"{self.name(place.path)}:{number}"
            message, advice = (part.replace(str(place), text) for part in (message, advice))
        return message, advice


def _short(path: str, root: Path) -> str:
    whole = Path.cwd() / path
    shown = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path
    return shown.encode("utf-8", "replace").decode() or path
