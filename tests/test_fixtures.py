"""Every fixture through the codemod: exact text, findings, stability, patches, other bytes.

The tests of a case come one after the other and share what the engine says about the same texts.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from fixture_support import Case, cases
from pyflakes import api, reporter

from amp_migrate import engine
from amp_migrate.commands.cli import codemod, main
from amp_migrate.outcome import Beyond, Result
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_JARGON = re.compile(
    r"\b(units?|sites?|in sight|handed|its own step is not|callee|<module>|this tool)\b|(?<![\w.\"'/])/\w+/\w+"
)
"""Words that only who writes migrations knows, and absolute paths: no finding has them."""
CHANGED = [case for case in cases() if case.changed]
UNCHANGED = [case for case in cases() if not case.changed]
_GIVEN = ("api", "scaler", "fixes", "only_fixes", "select", "ignore", "unsafe", "resume_compat")


def _settings(case: Case) -> Settings:
    given = codemod.make_context("amp-migrate", [*case.args, "."]).params
    chosen = {name: given[name] for name in _GIVEN}
    return Settings(api="torch.cuda.amp").updated(chosen)


_Texts = tuple[tuple[str, str], ...]
_ENGINE = engine.migrate


@lru_cache(maxsize=8)
def _said(texts: _Texts, settings: Settings) -> Result:
    """Return what the engine says about texts: it sees no more of a file than that and its name."""
    return _ENGINE([Source.from_bytes(name, text.encode()) for name, text in texts], settings)


def migrate(
    sources: Sequence[Source], settings: Settings, beyond: Beyond = lambda _: None, **_: bool
) -> Result:
    """Return what the engine says about sources, whatever the bytes that their texts came from, and all notes."""
    known = _said(tuple((s.path, s.text) for s in sources), replace(settings, root=Path()))
    if (more := beyond(known.plan.paths())) is not None:
        return migrate(more, settings, beyond)
    pairs = zip(sources, known.outcomes, strict=True)
    outcomes = [replace(outcome, before=source) for source, outcome in pairs]
    return replace(known, outcomes=outcomes)


def _migrated(case: Case, files: Mapping[str, bytes]) -> tuple[Result, dict[str, bytes]]:
    sources = [Source.from_bytes(name, data) for name, data in files.items()]
    result = migrate(sources, _settings(case))
    return result, {
        o.path: o.before.data if o.after is None else o.before.encode(o.after)
        for o in result.outcomes
    }


def _bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in files.items()}


def _named(chosen: list[Case]) -> pytest.MarkDecorator:
    names = [case.name for case in chosen]
    return pytest.mark.parametrize("case", chosen, ids=names, scope="module")


@_named(list(cases()))
def test_text_is_exactly_the_expected_one(case: Case) -> None:
    """What the codemod writes is what a person wrote by hand."""
    result, after = _migrated(case, _bytes(case.before))
    assert [o.failed for o in result.outcomes if o.failed] == []
    assert {name: data.decode() for name, data in after.items()} == case.after


@_named(list(cases()))
def test_findings_are_the_expected_ones(case: Case) -> None:
    """Fixes are exactly those expected; what is left, and the listed notes, are reported."""
    result, _ = _migrated(case, _bytes(case.before))
    for finding in result.plan.findings():
        said = f"{finding.message}; {finding.advice}"
        assert not _JARGON.search(said), f"{finding.code} says {said}"
        assert not finding.cause or finding.cause.path in case.before
        assert all(str(place) in said for place in finding.named)
    found = [(f"{f.path}:{f.span.line}", f.code, f.status.value) for f in result.plan.findings()]
    expected = [(e.where, e.code, e.status) for e in case.findings]
    fixed = Counter(item for item in expected if item[2] == "fixed")
    assert Counter(item for item in found if item[2] == "fixed") == fixed
    for item in expected:
        assert any(_answers(other, item) for other in found), f"{item} is missing from {found}"
    if not any(status == "left" for _, _, status in expected):
        left = [item for item in found if item[2] == "left" and not item[1].startswith("AMP3")]
        assert left == []


def _answers(found: tuple[str, str, str], expected: tuple[str, str, str]) -> bool:
    """Tell whether a finding is the expected one; a note may stand anywhere in its file."""
    where, code, status = expected
    place = found[0].rpartition(":")[0] == where.rpartition(":")[0]
    exact = found[0] == where or status == "note"
    return place and exact and fnmatchcase(found[1], code) and found[2] == status


@_named(list(cases()))
def test_tally_adds_up(case: Case) -> None:
    """Found is migrated, fixed and left together, and something is done where files change."""
    result, _ = _migrated(case, _bytes(case.before))
    tally = result.tally
    assert tally.found == tally.migrated + tally.fixed + tally.left
    stays = "--only-fixes" in case.args
    assert (tally.migrated > 0) == (case.changed and not stays)
    assert not stays or (tally.fixed > 0) == case.changed


@_named(CHANGED)
def test_second_run_changes_nothing(case: Case) -> None:
    """The expected text is a fixed point of the codemod."""
    result, after = _migrated(case, _bytes(case.after))
    assert {name: data.decode() for name, data in after.items()} == case.after
    assert result.tally.migrated == result.tally.fixed == 0


@_named(CHANGED)
def test_result_compiles_without_new_flaws(case: Case) -> None:
    """No undefined or unused name appears that was not there before."""
    for name in filter(lambda name: name.endswith(".py"), case.after):
        compile(case.after[name], name, "exec", dont_inherit=True)
        assert _flaws(name, case.after[name]) <= _flaws(name, case.before[name])


def _flaws(name: str, text: str) -> set[str]:
    stream = io.StringIO()
    api.check(text, name, reporter.Reporter(stream, stream))
    return {line.partition(" ")[2] for line in stream.getvalue().splitlines()}


def _crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


def _marked(text: str) -> bytes:
    return b"\xef\xbb\xbf" + text.encode()


def _tabs_and_open_end(text: str) -> bytes:
    """Indent with tabs, and leave out the last newline: one text for both, as the engine sees each anew."""
    lines = []
    for line in text.split("\n"):
        body = line.lstrip(" ")
        width = len(line) - len(body)
        lines.append("\t" * (width // 4) + " " * (width % 4) + body)
    return "\n".join(lines).rstrip("\n").encode()


@pytest.mark.parametrize("variant", [_crlf, _marked, _tabs_and_open_end])
@_named([case for case in CHANGED if case.name != "simple/two_space_indent"])
def test_other_bytes_survive(case: Case, variant: Callable[[str], bytes]) -> None:
    """The same program in other bytes migrates to the same result in those bytes."""
    _, after = _migrated(case, {name: variant(text) for name, text in case.before.items()})
    assert after == {name: variant(text) for name, text in case.after.items()}


@_named(CHANGED)
def test_diff_applies(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--diff` writes nothing, and `git apply` of what it prints gives the expected files."""
    _write(tmp_path, case.before)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "migrate", migrate)
    printed = CliRunner().invoke(main, ["--diff", "--api", "torch.cuda.amp", *case.args, "."])
    assert _read(tmp_path, case.before) == case.before
    patch = tmp_path / "migration.patch"
    patch.write_bytes(printed.stdout_bytes)
    subprocess.run(["git", "apply", patch.name], check=True, env=_outside_git(tmp_path))
    assert _read(tmp_path, case.after) == case.after


def _outside_git(folder: Path) -> dict[str, str]:
    return {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def _read(folder: Path, names: Mapping[str, str]) -> dict[str, str]:
    return {name: (folder / name).read_bytes().decode() for name in names}


def test_there_is_enough_to_learn_from() -> None:
    """The collection keeps its breadth, and what must stay untouched its share."""
    assert len(CHANGED) >= 60
    assert len(UNCHANGED) >= 40
    assert sum(len(case.before) > 1 for case in cases()) >= 25
    assert sum(bool(case.run) and len(case.before) == 1 for case in cases()) >= 12
    assert sum(bool(case.run) and len(case.before) > 1 for case in cases()) >= 12
