"""Annotations of GitHub Actions, one workflow command for each finding."""

from __future__ import annotations

from amp_migrate.output.level import LEVELS, told
from amp_migrate.output.place import Places
from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import Problem, Report
from amp_migrate.words import sentence

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_PENDING = {
    Status.MIGRATED: "amp-migrate would migrate this",
    Status.FIXED: "amp-migrate would fix this, which changes the training",
    Status.ROUTINE: "amp-migrate would change this",
}
_VERBS = ("becomes", "goes", "moves", "passes", "imports")
"""How messages begin that speak of the place itself."""


def github(report: Report) -> str:
    """Return the annotations; a migration that is already written needs none."""
    places = Places(report)
    lines = [*(_annotation(item, places) for item in told(report)), *map(_problem, report.problems)]
    return "".join(line + "\n" for line in lines)


def _annotation(finding: Finding, places: Places) -> str:
    where = places.of(finding)
    line, end_line = where.in_file
    numbers = {"line": line, "endLine": end_line}
    if where.cell is None:
        numbers |= {"col": where.column, "endColumn": where.end_column}
    properties = {"title": f"amp-migrate ({finding.code})", "file": where.path}
    properties |= {name: str(value) for name, value in numbers.items()}
    message, advice = places.said(finding)
    pending = _PENDING.get(finding.status)
    subject = "it " if message.partition(" ")[0] in _VERBS else ""
    said = f"{pending}: {subject}{message}" if pending else message
    text = "\n".join(sentence(part) for part in (said, advice) if part)
    return _command(_LEVELS[LEVELS[finding.status]], properties, text)


def _problem(problem: Problem) -> str:
    properties = {"title": "amp-migrate", "file": problem.path}
    return _command(
        "error", properties, sentence(f"this file cannot be migrated: {problem.reason}")
    )


def _command(level: str, properties: dict[str, str], message: str) -> str:
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    return f"::{level} {listed}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
