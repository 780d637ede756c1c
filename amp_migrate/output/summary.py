"""The last lines for people: what could not be done, the tally, and what decided the exit code."""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.output.place import shown
from amp_migrate.output.style import Style
from amp_migrate.report import Exit, Report
from amp_migrate.words import plural


def problems(report: Report, style: Style) -> Iterator[str]:
    """Yield a line for every file that was not migrated."""
    for problem in sorted(report.problems, key=lambda item: item.path):
        yield f"{shown(problem.path)}: {style('error', 'bold', 'red')}: {problem.reason}\n"
    for item in report.passed_over:
        yield style(f"{shown(item.path)}: passed over: {item.reason}\n", "dim")


def summary(report: Report, style: Style) -> str:
    """Return the tally and what happened to the files."""
    counts = report.counts
    lines = []
    if report.enables:
        lines.append(_enabled(report, style))
    elif report.only_fixes and not report.problems:
        lines.append(f"Apex stays: {_corrected(report, style)}")
    elif counts.found:
        kinds = (
            (counts.migrated, "migrated", "green"),
            (counts.fixed, "fixed", "yellow"),
            (counts.left, "left", "red"),
        )
        shown = ", ".join(
            style(f"{n} {word}", *([colour] if n else [])) for n, word, colour in kinds
        )
        files = plural(report.files_with_sites, "file")
        lines.append(f"found {plural(counts.found, 'use')} of Apex: {shown} (in {files})")
    elif not report.changes and not report.problems:
        lines.append(_nothing(report))
    if report.changes:
        lines.append(_rewritten(report))
    return "".join(line + "\n" for line in lines)


def _enabled(report: Report, style: Style) -> str:
    """Return the tally of a run that adds AMP to trainings."""
    counts = report.counts
    if not counts.found:
        return "found no training in FP32"
    kinds = ((counts.migrated, "enabled", "green"), (counts.left, "left", "red"))
    shown = ", ".join(style(f"{n} {word}", *([colour] if n else [])) for n, word, colour in kinds)
    fixed = (
        f", {style(plural(counts.fixed, 'mistake') + ' fixed', 'yellow')}" if counts.fixed else ""
    )
    trainings = plural(counts.migrated + counts.left, "training")
    return f"found {trainings}: {shown}{fixed} (in {plural(report.files_with_sites, 'file')})"


def _rewritten(report: Report) -> str:
    """Say what happened to the files that were read."""
    verb = "rewrote" if report.written else "would rewrite"
    said = f"{verb} {plural(len(report.changes), 'file')}"
    if report.read > len(report.changes):
        said += f" of {report.read}"
    kept = len(report.files_left - {change.path for change in report.changes})
    if kept and not report.enables:
        said += f"; {plural(kept, 'file')} with Apex {'stays' if kept == 1 else 'stay'} unchanged"
    return said


def _nothing(report: Report) -> str:
    if not report.migrates:
        return "the migration (AMP1) is switched off, and the other rules change nothing here"
    return "found nothing to migrate" if report.findings else "found no Apex AMP code"


def _corrected(report: Report, style: Style) -> str:
    counts = report.counts
    if not counts.found:
        return "nothing to fix"
    fixed = style(f"{counts.fixed} fixed", *(["yellow"] if counts.fixed else []))
    left = style(f"{counts.left} left", *(["red"] if counts.left else []))
    return f"{fixed}, {left} (in {plural(report.files_with_sites, 'file')})"


def decided(verdict: Exit, style: Style) -> str:
    """Return the line that says what decided the exit code; none for a plain 0."""
    if not verdict.reason:
        return ""
    zero = " (--exit-zero)" if verdict.code == 0 else ""
    return style(f"exit {verdict.code}{zero}: {verdict.reason}\n", "dim")
