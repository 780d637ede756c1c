"""The report for programs, documented in docs/json.md."""

from __future__ import annotations

import json

from amp_migrate import __version__
from amp_migrate.output.place import Places
from amp_migrate.output.plan_page import events_of
from amp_migrate.plan.model import Finding
from amp_migrate.report import Exit, Report

VERSION = 1


def json_report(report: Report, verdict: Exit) -> str:
    """Return the whole report as one JSON document."""
    places = Places(report)
    document = {
        "version": VERSION,
        "tool": {"name": "amp-migrate", "version": __version__},
        "summary": {
            **report.counts._asdict(),
            "files_changed": len(report.changes),
            "written": report.written,
        },
        "exit": {"code": verdict.code, "reason": verdict.reason},
        "files": [{"path": change.path} for change in report.changes],
        "findings": [_finding(item, places) for item in report.findings],
        "compared": [events_of(item) for item in report.compared],
        "problems": [{"path": item.path, "reason": item.reason} for item in report.problems],
    }
    return json.dumps(document, indent=2) + "\n"


def _finding(finding: Finding, places: Places) -> dict[str, object]:
    where, (message, advice) = places.of(finding), places.said(finding)
    return {
        "path": where.path,
        "cell": where.cell,
        "location": {"row": where.line, "column": where.column},
        "end_location": {"row": where.end_line, "column": where.end_column},
        "code": finding.code,
        "status": finding.status.value,
        "message": message,
        "advice": advice,
        "cause": _cause(finding, places),
    }


def _cause(finding: Finding, places: Places) -> dict[str, object] | None:
    if finding.cause is None:
        return None
    where = places.at(finding.cause)
    return {
        "path": where.path,
        "cell": where.cell,
        "location": {"row": where.line, "column": where.column},
    }
