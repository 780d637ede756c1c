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
from amp_migrate.output.level import LEVELS, told
from amp_migrate.output.place import Places, Where
from amp_migrate.plan.model import Finding
from amp_migrate.report import Problem, Report
from amp_migrate.rules import RULES
from amp_migrate.rules.base import Rule
from amp_migrate.words import sentence

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(report: Report) -> str:
    """Return the log of the run; a migration that is already written is no result any more."""
    findings = told(report)
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
        where, said = places.of(finding), places.said(finding)
        line = report.sources[finding.path].text.split("\n")[finding.span.line - 1].strip()
        key = (finding.code, finding.path, line)
        seen[key] += 1
        results.append(
            {
                "ruleId": finding.code,
                "level": LEVELS[finding.status],
                "message": {"text": "\n\n".join(map(sentence, filter(None, said)))},
                "locations": [_location(finding.path, _region(where))],
                **_related(finding, places),
                "partialFingerprints": {"primaryLocationLineHash": _fingerprint(key, seen[key])},
                "properties": {"status": finding.status.value, "advice": said[1]},
            }
        )
    return results


def _region(where: Where) -> dict[str, int]:
    """Return the lines of the file, with columns but in a notebook, whose lines are those of its JSON."""
    first, last = where.in_file
    region = {"startLine": first, "endLine": last}
    if where.cell is None:
        region |= {"startColumn": where.column, "endColumn": where.end_column}
    return region


def _related(finding: Finding, places: Places) -> dict[str, object]:
    """Return the place of what keeps this one as it is, for who reads the result by itself."""
    if finding.cause is None:
        return {}
    location = _location(finding.cause.path, _region(places.at(finding.cause)))
    return {"relatedLocations": [{**location, "message": {"text": "What keeps it as it is."}}]}


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
