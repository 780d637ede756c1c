"""What the planner decided about described trainings, as findings about the user's own files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from amp_migrate.enable.words import GENERAL, in_user_lines, in_user_terms
from amp_migrate.facts.tree import Tree
from amp_migrate.outcome import Result
from amp_migrate.plan.model import Finding, Place, Status
from amp_migrate.report import Compared
from amp_migrate.source.align import Change, changes, moved_line
from amp_migrate.source.span import Span

CODES = {
    "AMP102": "AMP501",
    "AMP103": "AMP504",
    "AMP104": "AMP502",
    "AMP105": "AMP505",
    "AMP106": "AMP506",
    "AMP107": "AMP503",
    "AMP109": "AMP507",
    "AMP115": "AMP502",
    "AMP116": "AMP504",
    "AMP209": "AMP502",
    "AMP120": "AMP502",
    "AMP206": "AMP504",
}
"""The rules of this command that stand for rules of the migration; those of the mistakes keep their codes."""


@dataclass
class Told:
    """The findings of a plan in the user's lines and words; `left` are those of what the planner leaves, and why."""

    findings: list[Finding] = field(default_factory=list)
    left: list[Finding] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)


def told(trees: Mapping[str, Tree], texts: Mapping[str, str], result: Result) -> Told:
    """Return what a plan for the described `texts` says about the files of `trees`."""
    moved = {path: changes(text.split("\n"), trees[path].lines) for path, text in texts.items()}
    found = Told()
    for finding in result.plan.findings():
        own = _placed(finding, trees, moved)
        if finding.status is Status.LEFT or finding.code.startswith("AMP9"):
            found.left.append(_worded(own, moved, GENERAL))
        else:
            kept = _kept(own, moved)
            found.findings += [kept] if kept is not None else []
    for item in result.compared:
        found.compared.append(_compared(item, moved.get(item.path, [])))
    return found


def without_scaler(findings: list[Finding], dtype: str) -> list[Finding]:
    """Return findings as they are of a training that has no GradScaler."""
    found = []
    for finding in findings:
        if finding.code in ("AMP502", "AMP503"):
            said = re.sub(r"under `.*`", f"under autocast to {dtype}", finding.message)
            found.append(replace(finding, message=said))
        elif finding.code == "AMP507":
            said = f"{finding.message.partition(' ')[0]} is told whether AMP is on"
            found.append(replace(finding, message=said))
        elif finding.code not in ("AMP504", "AMP505", "AMP506"):
            found.append(finding)
    return found


def _kept(finding: Finding, moved: Mapping[str, list[Change]]) -> Finding | None:
    """Return a finding of what is done; None for what only the described text is about."""
    code = CODES.get(finding.code, finding.code)
    own = code != finding.code
    message = in_user_terms(finding.message)
    if finding.status is Status.NOTE:
        advice = in_user_terms(finding.advice)
        if message is None or advice is None or code.startswith("AMP1"):
            return None
        return replace(_worded(finding, moved, message), code=code)
    if finding.status is Status.FIXED and not own:
        return _worded(finding, moved, f"a mistake is corrected; see amp-migrate explain {code}")
    if code == "AMP501" or not own:
        return None
    return replace(_worded(finding, moved, "done for AMP"), code=code, status=Status.ROUTINE)


def _worded(finding: Finding, moved: Mapping[str, list[Change]], instead: str) -> Finding:
    message = in_user_terms(in_user_lines(finding.message, moved)) or instead
    advice = in_user_terms(in_user_lines(finding.advice, moved)) or ""
    if message == instead and instead == GENERAL:
        advice = "write it in a plainer way, then run again, or add AMP by hand"
    return replace(finding, message=message, advice=advice, named=())


def _placed(
    finding: Finding, trees: Mapping[str, Tree], moved: Mapping[str, list[Change]]
) -> Finding:
    span = _span(finding.span, finding.path, trees, moved)
    cause = finding.cause
    if cause is not None:
        cause = Place(cause.path, _span(cause.span, cause.path, trees, moved))
    return replace(finding, span=span, cause=cause)


def _span(
    span: Span, path: str, trees: Mapping[str, Tree], moved: Mapping[str, list[Change]]
) -> Span:
    """Return where a place of a described text stands in the user's file."""
    if path not in moved:
        return span
    line, end = (moved_line(n - 1, moved[path]) for n in (span.line, span.end_line))
    lines = trees[path].lines
    column = min(span.column, len(lines[line]))
    return Span(
        line + 1, column, max(end, line) + 1, min(span.end_column, len(lines[max(end, line)]))
    )


def _compared(item: Compared, differences: list[Change]) -> Compared:
    events = tuple(
        event._replace(before=moved_line(event.before - 1, differences) + 1)
        if event.before is not None
        else event
        for event in item.events
    )
    return item._replace(events=events)
