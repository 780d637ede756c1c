"""The streams: patches and machine formats on stdout, everything for people on stderr."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from amp_migrate.output.style import Style, painted_patch
from amp_migrate.output.summary import decided, problems, summary
from amp_migrate.output.target import OutputFile
from amp_migrate.report import Exit, Report


class Console(NamedTuple):
    """Where output goes and how it looks; `colour` None leaves the choice to the stream.

    The format "text" goes to stderr, all others to stdout, or any to `file`; a patch goes to stdout,
    or to `file` where the format is one for people.
    """

    format: str = "text"
    file: OutputFile | None = None
    quiet: bool = False
    colour: bool | None = None
    diff: bool = False

    @property
    def needs_stdout(self) -> bool:
        """Whether the report takes stdout."""
        return not self._for_people and self.file is None

    @property
    def patched(self) -> bool:
        """Whether the patch takes the file."""
        return self.diff and self._for_people and self.file is not None

    @property
    def _for_people(self) -> bool:
        return self.format in ("text", "concise")

    def report(self, report: Report, verdict: Exit, hint: str = "") -> None:
        """Print the report in its format, and for people the summary with one hint."""
        style = Style.of(sys.stderr, self.colour)
        if self.needs_stdout or (self.file is not None and not self.patched):
            self.page(_formatted(self.format, report, verdict, Style(False)))
        elif self.quiet:
            _say("".join(problems(report, style)))
        else:
            found = _formatted(self.format, report, verdict, style)
            _say(found + "\n" if found else "")
        if not self.quiet:
            said = style(f"{hint}\n", "dim") if hint else ""
            _say(summary(report, style) + said + decided(verdict, style))

    def patch(self, report: Report) -> None:
        """Print the changes as one patch; FORCE_COLOR leaves it plain, as it may go into a pipe."""
        if not report.changes and not self.patched:
            return
        from amp_migrate.output.formats.diff import patch

        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        style = Style(colour if self.colour is None else self.colour)
        made = (patch(change.path, change.before, change.after) for change in report.changes)
        content = b"".join(made)
        if self.patched and self.file is not None:
            self.file.write(content)
        else:
            self.data(painted_patch(content, style))

    def page(self, content: str) -> None:
        """Put text on stdout, or into the output file."""
        data = content.encode("utf-8", "surrogateescape")
        if self.file is None:
            self.data(data)
        else:
            self.file.write(data)

    def plan(self, report: Report) -> None:
        """Print what would be done, as JSON where that is the format."""
        from amp_migrate.output.plan_page import plan_json, plan_text

        style = Style(False) if self.file else Style.of(sys.stdout, self.colour)
        as_json = self.format == "json"
        units, compared = report.units, report.compared
        self.page(plan_json(units, compared) if as_json else plan_text(units, compared, style))

    def data(self, content: bytes) -> None:
        """Put bytes on stdout as they are."""
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _say(content: str) -> None:
    sys.stderr.buffer.write(content.encode("utf-8", "surrogateescape"))
    sys.stderr.buffer.flush()


def _formatted(name: str, report: Report, verdict: Exit, style: Style) -> str:
    if name in ("text", "concise"):
        parts = [_findings(name, report, style), "".join(problems(report, style))]
        return ("\n" if name == "text" else "").join(part for part in parts if part)
    if name == "json":
        from amp_migrate.output.formats.json_report import json_report

        return json_report(report, verdict)
    if name == "github":
        from amp_migrate.output.formats.github import github

        return github(report)
    from amp_migrate.output.formats.sarif import sarif

    return sarif(report)


def _findings(name: str, report: Report, style: Style) -> str:
    if not report.findings:
        return ""
    from amp_migrate.output.text import concise, text

    return text(report, style) if name == "text" else concise(report, style)
