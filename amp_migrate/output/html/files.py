"""The files: before and after side by side, and what was decided about each line beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape

from amp_migrate.output.html.echoes import Echoes, echoes
from amp_migrate.output.html.highlight import Piece, bare, marked, pieces
from amp_migrate.output.html.places import Addresses
from amp_migrate.output.html.sides import Row, Stretch, differing, stretches
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import Report
from amp_migrate.source.discover import SUFFIXES
from amp_migrate.words import plural

GRAVEST = (Status.LEFT, Status.FIXED, Status.NOTE, Status.MIGRATED, Status.ROUTINE)
WORDS = {
    Status.LEFT: "left",
    Status.FIXED: "fixed",
    Status.NOTE: "note",
    Status.MIGRATED: "migrated",
    Status.ROUTINE: "goes with it",
}


def files(report: Report, addresses: Addresses) -> Iterator[str]:
    """Yield a section for every file that changes or that somebody speaks of."""
    noted: dict[str, list[Finding]] = defaultdict(list)
    for item in report.findings:
        noted[item.path].append(item)
    texts = {change.path: change.text for change in report.changes}
    echoed = echoes(report.decisions)
    for path in sorted({*noted, *texts}):
        old = report.sources[path].text
        file = _File(path, old, texts.get(path, old), noted[path], addresses)
        file.echoes = echoed.get(path, {})
        yield file.section()


class _File:
    def __init__(
        self, path: str, old: str, new: str, noted: list[Finding], addresses: Addresses
    ) -> None:
        self.path, self.addresses, self.changes = path, addresses, old != new
        self.echoes: Echoes = {}
        self.old, self.new = old.split("\n"), new.split("\n")
        coloured = pieces if path.endswith(SUFFIXES) else bare
        self.old_pieces = coloured(old)
        self.new_pieces = coloured(new) if self.changes else self.old_pieces
        self.noted: dict[int, list[Finding]] = defaultdict(list)
        for item in noted:
            self.noted[item.span.line - 1].append(item)

    def section(self) -> str:
        """Return the file with its heading."""
        parts = stretches(self.old, self.new, self.noted)
        body = "".join(self._shown(part) if part.shown else self._folded(part) for part in parts)
        sides = "<span>before</span><span>after</span>" if self.changes else "<span>stays</span>"
        return (
            f'<details class="file" id="{self.addresses.file(self.path)}" open>'
            f"<summary><h3>{escape(self.addresses.name(self.path))}</h3>{self._tally(parts)}</summary>"
            f'<div class="heads{"" if self.changes else " one"}">{sides}<span>why</span></div>'
            f"{body}</details>"
        )

    def _tally(self, parts: Sequence[Stretch]) -> str:
        rows = [row for part in parts for row in part.rows if row.kind != "same"]
        gone = sum(row.old is not None for row in rows)
        come = sum(row.new is not None for row in rows)
        found = [item.status for items in self.noted.values() for item in items]
        chips = "".join(
            f'<span class="chip {status.value}">{_count(found.count(status), status)}</span>'
            for status in GRAVEST
            if status in found and status is not Status.ROUTINE
        )
        lines = f'<b class="come">+{come}</b> <b class="gone">−{gone}</b>' if rows else "unchanged"
        return f'<span class="lines">{lines}</span>{chips}'

    def _shown(self, part: Stretch) -> str:
        rows = "".join(map(self._row, part.rows))
        width = "" if self.changes else " one"
        return f'<div class="hunk{width}"><table>{rows}</table>{self._why(part)}</div>'

    def _folded(self, part: Stretch) -> str:
        lines = [row.old for row in part.rows if row.old is not None]
        text = escape("\n".join(self.old[line] for line in lines), quote=False)
        count = plural(len(lines), "line")
        return (
            f'<details class="fold"><summary>{count} as before</summary><pre>{text}</pre></details>'
        )

    def _row(self, row: Row) -> str:
        one = None if row.old is None else self.old[row.old]
        two = None if row.new is None else self.new[row.new]
        marks = None
        if row.kind == "changed" and one is not None and two is not None:
            marks = differing(one, two)
        left = self._number(row.old) + _code(one, row.old, self.old_pieces, marks and marks[0])
        if not self.changes:
            return f"<tr>{left}</tr>"
        number = "" if row.new is None or self.path.endswith(".ipynb") else str(row.new + 1)
        right = f"<th>{number}</th>" + _code(two, row.new, self.new_pieces, marks and marks[1])
        return f'<tr class="{row.kind}">{left}{right}</tr>'

    def _number(self, line: int | None) -> str:
        if line is None:
            return "<th></th>"
        shown = self.addresses.number(self.path, line + 1)
        found = self.noted.get(line)
        if not found:
            return f"<th>{shown}</th>"
        worst = next(status for status in GRAVEST if any(i.status is status for i in found))
        anchor = self.addresses.line(self.path, line + 1)
        return f'<th class="{worst.value}" id="{anchor}"><a href="#{anchor}-why">{shown}</a></th>'

    def _why(self, part: Stretch) -> str:
        lines = [row.old for row in part.rows if row.old is not None]
        told = {
            (item.path, item.span, item.code) for line in lines for item in self.noted.get(line, ())
        }
        entries = []
        for line in lines:
            if line in self.noted:
                entries.append(self._entry(line))
            for item in self.echoes.get(line, ()) if self.changes else ():
                if (item.path, item.span, item.code) not in told:
                    told.add((item.path, item.span, item.code))
                    entries.append(self._echo(line, item))
        return f'<ol class="why">{"".join(entries)}</ol>'

    def _echo(self, line: int, item: Finding) -> str:
        number = self.addresses.number(self.path, line + 1)
        here = f"line {item.span.line}" if item.path == self.path else ""
        place = self.addresses.link(item.path, item.span.line, here)
        text = note(item, self.addresses).replace("</a> ", f"</a> with {place}: ", 1)
        return f'<li><span class="at">{number}</span>{text}</li>'

    def _entry(self, line: int) -> str:
        anchor = self.addresses.line(self.path, line + 1)
        number = self.addresses.number(self.path, line + 1)
        found = sorted(self.noted[line], key=lambda item: GRAVEST.index(item.status))
        texts = "".join(note(item, self.addresses) for item in found)
        return f'<li id="{anchor}-why"><a class="at" href="#{anchor}">{number}</a>{texts}</li>'


def _count(number: int, status: Status) -> str:
    return plural(number, "note") if status is Status.NOTE else f"{number} {WORDS[status]}"


def note(item: Finding, addresses: Addresses) -> str:
    """Return what was decided about a place, by which rule, and what to do."""
    message, advice = addresses.said(item)
    do = f'<span class="advice">{prose(advice)}</span>' if advice else ""
    return (
        f'<p class="{item.status.value}"><a class="code" href="#{item.code}">{item.code}</a> '
        f"{prose(message)}{do}</p>"
    )


def prose(text: str) -> str:
    """Return a message as HTML; what stands between backticks is code."""
    parts = escape(text, quote=False).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts).replace("\n", "<br>")
    coded = [f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts)]
    return "".join(coded).replace("\n", "<br>")


def _code(
    text: str | None,
    line: int | None,
    found: Sequence[Sequence[Piece]],
    marks: tuple[int, int] | None,
) -> str:
    if text is None or line is None:
        return '<td class="void"></td>'
    indent = len(text) - len(text.lstrip(" "))
    if not indent:
        return f"<td>{marked(text, found[line], marks)}</td>"
    body = marked(text, found[line], marks, indent)
    return f'<td style="--i:{indent}"><s>{" " * indent}</s>{body}</td>'
