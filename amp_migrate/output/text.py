"""The findings for people: what was left and why, what was changed, and what to know."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from amp_migrate.output.place import Places, Where
from amp_migrate.output.style import Style
from amp_migrate.plan import Finding, Status
from amp_migrate.report import Report

_COLOURS = {
    Status.LEFT: "red",
    Status.FIXED: "yellow",
    Status.NOTE: "cyan",
    Status.MIGRATED: "green",
}
_COUNTED = frozenset({Status.MIGRATED, Status.ROUTINE})


def text(report: Report, style: Style) -> str:
    """Return the findings, grouped by file; routine migrations are only counted."""
    places = Places(report)
    told = [item for item in report.findings if item.status not in _COUNTED]
    blocks = [
        "".join(_finding(group, places, style) for group in _alike(list(findings)))
        for _, findings in groupby(told, key=lambda item: item.path)
    ]
    return "\n".join(blocks)


def concise(report: Report, style: Style) -> str:
    """Return one line for every finding, migrations included."""
    places = Places(report)
    findings = [item for item in report.findings if item.status is not Status.ROUTINE]
    return "".join(_line(item, places.of(item), style) + "\n" for item in findings)


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
