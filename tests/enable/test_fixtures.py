"""Every FP32 fixture through `enable`: exact text, findings, stability, other bytes, and the same training."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache

import pytest
from fixture_run import Mode, run
from fixture_support import Case, enabled

from amp_migrate.commands.cli import enable
from amp_migrate.enable.enabling import Choices
from amp_migrate.enable.run import run_texts
from amp_migrate.report import Report
from amp_migrate.settings import Settings

CASES = enabled()
RUNS = [case for case in CASES if case.run]
_FOREIGN = re.compile(r"\bapex\b|initialize|scale_loss|opt_level|master_params", re.I)


def _choices(case: Case) -> Choices:
    given = enable.make_context("enable", [*case.args, "."]).params
    return Choices(given["dtype"], given["flag"], given["always"])


def _report(case: Case, files: dict[str, bytes]) -> Report:
    return run_texts(files, Settings(api="torch.cuda.amp"), _choices(case))


@cache
def _said(name: str) -> Report:
    case = next(case for case in CASES if case.name == name)
    return _report(case, {name: text.encode() for name, text in case.before.items()})


def _each(cases: list[Case] | tuple[Case, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


@_each(CASES)
def test_text_and_findings_are_the_expected_ones(case: Case) -> None:
    """What is written is what a person wrote by hand; no finding speaks of what the user does not have."""
    report = _said(case.name)
    changed = {change.path: change.text for change in report.changes}
    assert report.problems == []
    assert {**case.before, **changed} == case.after
    found = [(f"{f.path}:{f.span.line}", f.code, f.status.value) for f in report.findings]
    for expected in case.findings:
        place = expected.where, expected.code, expected.status
        assert any(
            (w, s) == (place[0], place[2]) and fnmatchcase(c, place[1]) for w, c, s in found
        ), found
    decided = {"fixed", "left"}
    assert sum(f[2] in decided for f in found) == sum(e.status in decided for e in case.findings)
    for finding in report.findings:
        if finding.code != "AMP593":
            assert not _FOREIGN.search(f"{finding.message} {finding.advice}"), finding


@_each([case for case in CASES if case.changed])
def test_second_run_changes_nothing(case: Case) -> None:
    """The expected text is a fixed point."""
    again = _report(case, {name: text.encode() for name, text in case.after.items()})
    assert again.changes == []
    assert again.counts.migrated == 0


def _other_bytes(text: str) -> bytes:
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" ")
        width = len(line) - len(body)
        lines.append("\t" * (width // 4) + " " * (width % 4) + body)
    return b"\xef\xbb\xbf" + "\r\n".join(lines).encode()


@_each([case for case in CASES if case.changed and len(case.before) == 1])
def test_other_bytes_survive(case: Case) -> None:
    """Tabs, line ends and a mark at the start stay what they are."""
    report = _report(case, {name: _other_bytes(text) for name, text in case.before.items()})
    after = {change.path: change.after for change in report.changes}
    assert after == {name: _other_bytes(text) for name, text in case.after.items() if name in after}
    assert after


@_each(RUNS)
def test_training_is_the_one_in_fp32(case: Case) -> None:
    """Without casts the same bits, also with the option off; with casts on nothing raises."""
    how = Mode(casts=True, overflow=0)
    before = run(case.reference, case.run, case.run_args, how, apex=False)
    assert before.splitlines()
    assert "raised" not in before
    runs = [(case.run_args, False), *((args, True) for args in case.more_args)]
    for arguments, casts in runs:
        how = Mode(casts=casts, overflow=0)
        assert run(case.after, case.run, arguments, how, apex=False) == before
    if "casts" in case.modes:
        cast = run(case.after, case.run, case.run_args, Mode(casts=True, overflow=0), apex=False)
        assert "raised" not in cast
        assert cast != before
