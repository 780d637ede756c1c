"""The report for people: what was left and why, what was changed, and a summary that adds up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from amp_migrate.output.place import Places, Where
from amp_migrate.output.style import Style
from amp_migrate.plan import Finding, Status
from amp_migrate.run import Exit, Report, plural

_COLOURS = {
    Status.LEFT: "red",
    Status.FIXED: "yellow",
    Status.NOTE: "cyan",
    Status.MIGRATED: "green",
}
_SITES = frozenset({Status.MIGRATED, Status.FIXED, Status.LEFT})
_COUNTED = frozenset({Status.MIGRATED, Status.ROUTINE})


def text(report: Report, style: Style) -> str:
    """Return the findings, grouped by file; routine migrations are only counted."""
    places = Places(report)
    told = [item for item in report.findings if item.status not in _COUNTED]
    blocks = [
        "".join(_finding(group, places, style) for group in _alike(list(findings)))
        for _, findings in groupby(told, key=lambda item: item.path)
    ]
    blocks += ["".join(problems(report, style))] if report.problems or report.passed_over else []
    return "\n".join(block for block in blocks if block)


def concise(report: Report, style: Style) -> str:
    """Return one line for every finding, migrations included."""
    places = Places(report)
    findings = [item for item in report.findings if item.status is not Status.ROUTINE]
    lines = [_line(item, places.of(item), style) + "\n" for item in findings]
    return "".join([*lines, *problems(report, style)])


def _line(finding: Finding, where: Where, style: Style) -> str:
    code = style(finding.code, "bold", _COLOURS[finding.status])
    return f"{where} {code} {finding.status.value}: {finding.message}"


def _alike(findings: list[Finding]) -> Iterable[list[Finding]]:
    """Group findings of a file that say the same, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for item in findings:
        key = (item.code, item.status, item.message, item.advice)
        groups.setdefault(key, []).append(item)
    return groups.values()


def _finding(group: list[Finding], places: Places, style: Style) -> str:
    first = group[0]
    lines = [_line(first, places.of(first), style)]
    lines += [f"    {line}" for line in first.advice.splitlines()]
    others = [_short(places.of(item)) for item in group[1:]]
    if others:
        lines.append(style(f"    also at {', '.join(others)}", "dim"))
    return "".join(line + "\n" for line in lines)


def _short(where: Where) -> str:
    return f"line {where.line}" if where.cell is None else f"cell {where.cell} line {where.line}"


def problems(report: Report, style: Style) -> Iterator[str]:
    """Yield a line for every file that was not migrated."""
    for problem in sorted(report.problems, key=lambda item: item.path):
        yield f"{problem.path}: {style('error', 'bold', 'red')}: {problem.reason}\n"
    for item in report.passed_over:
        yield style(f"{item.path}: passed over: {item.reason}\n", "dim")


def summary(report: Report, style: Style) -> str:
    """Return the tally and what happened to the files."""
    counts = report.counts
    files = {item.path for item in report.findings if item.status in _SITES}
    lines = []
    if counts.found:
        kinds = (
            (counts.migrated, "migrated", "green"),
            (counts.fixed, "fixed", "yellow"),
            (counts.left, "left", "red"),
        )
        shown = ", ".join(
            style(f"{n} {word}", *([colour] if n else [])) for n, word, colour in kinds
        )
        lines.append(
            f"found {plural(counts.found, 'Apex site')}: {shown} (in {plural(len(files), 'file')})"
        )
    elif not report.changes and not report.problems:
        lines.append("found no Apex AMP code")
    if report.changes:
        verb = "rewrote" if report.written else "would rewrite"
        lines.append(f"{verb} {plural(len(report.changes), 'file')}")
    return "".join(line + "\n" for line in lines)


def decided(verdict: Exit, style: Style) -> str:
    """Return the line that says what decided the exit code; none for a plain 0."""
    if not verdict.reason:
        return ""
    zero = " (--exit-zero)" if verdict.code == 0 else ""
    return style(f"exit {verdict.code}{zero}: {verdict.reason}\n", "dim")
