"""Annotations of GitHub Actions, one workflow command for each finding."""

from __future__ import annotations

from amp_migrate.output.level import LEVELS, STANDING
from amp_migrate.output.place import Places
from amp_migrate.plan import Finding
from amp_migrate.report import Problem, Report

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def github(report: Report) -> str:
    """Return the annotations; a migration that is already written needs none."""
    places = Places(report)
    told = STANDING if report.written else LEVELS.keys()
    findings = [item for item in report.findings if item.status in told]
    lines = [*(_annotation(item, places) for item in findings), *map(_problem, report.problems)]
    return "".join(line + "\n" for line in lines)


def _annotation(finding: Finding, places: Places) -> str:
    where = places.of(finding)
    properties = {"title": f"amp-migrate ({finding.code})", "file": where.path}
    if where.cell is None:
        lines = {"line": where.line, "endLine": where.end_line}
        columns = {"col": where.column, "endColumn": where.end_column}
        properties |= {name: str(value) for name, value in (lines | columns).items()}
    message = "\n".join(part for part in (finding.message, finding.advice) if part)
    return _command(_LEVELS[LEVELS[finding.status]], properties, message)


def _problem(problem: Problem) -> str:
    return _command("error", {"title": "amp-migrate", "file": problem.path}, problem.reason)


def _command(level: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{level} {listed}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
