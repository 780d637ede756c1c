"""SARIF 2.1.0, as code scanning services read it: relative paths and stable fingerprints."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from urllib.parse import quote

from amp_migrate import __version__
from amp_migrate.output.explain import first_paragraph
from amp_migrate.output.level import LEVELS, STANDING
from amp_migrate.output.place import Places
from amp_migrate.plan import Finding
from amp_migrate.report import Problem, Report
from amp_migrate.rules import RULES
from amp_migrate.rules.base import Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: Report) -> str:
    """Return the log of the run; a migration that is already written is no result any more."""
    told = STANDING if report.written else LEVELS.keys()
    findings = [item for item in report.findings if item.status in told]
    run = {
        "tool": {"driver": _driver({item.code for item in findings})},
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [_notification(item) for item in report.problems],
            }
        ],
        "originalUriBaseIds": {"%SRCROOT%": {"description": {"text": "The working directory."}}},
        "results": _results(findings, report),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver(codes: set[str]) -> dict[str, object]:
    known = {rule.code: rule for rule in RULES}
    rules = [_rule(known[code]) if code in known else {"id": code} for code in sorted(codes)]
    return {"name": "amp-migrate", "version": __version__, "rules": rules}


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": first_paragraph(rule.doc) or rule.title},
        "help": {"text": rule.doc or rule.title, "markdown": rule.doc or rule.title},
        "properties": {"tags": [rule.family, rule.safety.value]},
    }


def _results(findings: Iterable[Finding], report: Report) -> list[dict[str, object]]:
    places = Places(report)
    seen: Counter[tuple[str, str, str]] = Counter()
    results: list[dict[str, object]] = []
    for finding in findings:
        where = places.of(finding)
        line = report.sources[finding.path].text.split("\n")[finding.span.line - 1].strip()
        key = (finding.code, finding.path, line)
        seen[key] += 1
        results.append(
            {
                "ruleId": finding.code,
                "level": LEVELS[finding.status],
                "message": {"text": " ".join(filter(None, (finding.message, finding.advice)))},
                "locations": [
                    _location(
                        finding.path,
                        {
                            "startLine": where.line,
                            "startColumn": where.column,
                            "endLine": where.end_line,
                            "endColumn": where.end_column,
                        },
                    )
                ],
                "partialFingerprints": {"primaryLocationLineHash": _fingerprint(key, seen[key])},
            }
        )
    return results


def _fingerprint(key: tuple[str, str, str], count: int) -> str:
    """Hash what stays when other lines move; equal lines of a file are told apart by `count`."""
    digest = hashlib.sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{digest[:16]}:{count}"


def _notification(problem: Problem) -> dict[str, object]:
    return {
        "level": "error",
        "message": {"text": problem.reason},
        "locations": [_location(problem.path, None)],
    }


def _location(path: str, region: dict[str, int] | None) -> dict[str, object]:
    uri = quote(os.fsencode(path))
    artifact = (
        {"uri": f"file://{uri}"} if path.startswith("/") else {"uri": uri, "uriBaseId": "%SRCROOT%"}
    )
    place: dict[str, object] = {"artifactLocation": artifact}
    if region:
        place["region"] = region
    return {"physicalLocation": place}
