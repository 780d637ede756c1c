"""How grave a finding is to a program that reads reports."""

from __future__ import annotations

from amp_migrate.plan.model import Finding, Status
from amp_migrate.report import Report

LEVELS = {
    Status.LEFT: "error",
    Status.FIXED: "warning",
    Status.MIGRATED: "warning",
    Status.NOTE: "note",
}
_STANDING = frozenset({Status.LEFT, Status.NOTE})


def told(report: Report) -> list[Finding]:
    """Return the findings that are told: those that still hold where the changes are written."""
    levels = _STANDING if report.written else LEVELS.keys()
    return [item for item in report.findings if item.status in levels]
