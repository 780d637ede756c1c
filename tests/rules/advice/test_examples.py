"""The examples that `explain` prints are what the tool does, or where the finding comes."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from rules.advice.example_programs import EXAMPLE, PROGRAMS, WHOLE

from amp_migrate.api import Result, migrate_project
from amp_migrate.check import text as checked_text
from amp_migrate.plan.model import Status
from amp_migrate.rules import rules
from amp_migrate.rules.base import Safety
from amp_migrate.settings import Settings

RULES = [rule for rule in rules() if rule.family != "AMP5"]  # those have examples of their own
DOCS = {
    rule.code: dict(zip(parts[1::2], parts[2::2], strict=True))
    for rule in RULES
    for parts in [re.split(r"^## (.+)$", rule.doc, flags=re.M)]
}
MAIN = "train.py"
OPTIONS: dict[str, dict[str, Any]] = {
    "AMP401": {"api": "torch.amp"},
    "AMP309": {"dependencies": True},
}
REWRITES = sorted(rule.code for rule in RULES if rule.safety is not Safety.REPORT)
REPORTS = sorted(
    rule.code for rule in RULES if rule.safety is Safety.REPORT and rule.code != "AMP910"
)
LEFT = [code for code in REPORTS if code.startswith("AMP9")]


def code(rule: str, heading: str) -> dict[str, str]:
    """Return the code below a heading of a rule's page, by the files that lines like ``# engine.py`` name."""
    lines = DOCS[rule][heading].strip("\n").split("\n")
    words = next((n for n, line in enumerate(lines) if line[:1].strip()), len(lines))
    text = textwrap.dedent("\n".join(lines[:words])).strip("\n")
    parts = re.split(r"^# ([\w.]+\.(?:py|txt))\n", text, flags=re.M)
    if len(parts) == 1:
        return {MAIN: text}
    return {name: part.strip("\n") for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def programs(rule: str) -> dict[str, str]:
    """Return the files in which the example of a rule stands."""
    found = PROGRAMS[rule]
    return {MAIN: found} if isinstance(found, str) else found


def placed(rule: str, heading: str = "Example") -> dict[str, str]:
    """Return the files of a rule with its example, or what the page says to use instead, in place."""
    files = programs(rule)
    parts = code(rule, heading)
    assert {name for name, text in files.items() if EXAMPLE in text} == set(parts)
    return {name: _filled(text, parts.get(name, "")) for name, text in files.items()}


def _filled(program: str, part: str) -> str:
    line = next((line for line in program.splitlines() if EXAMPLE in line), None)
    if line is None:
        return program
    margin = line[: len(line) - len(line.lstrip())]
    return program.replace(line, textwrap.indent(part, margin))


def migrated(files: dict[str, str], folder: Path, **options: Any) -> Result:
    """Return what becomes of files beside a program that uses Apex."""
    for name, text in {"another.py": WHOLE, **files}.items():
        if name.endswith(".py"):
            compile(text, name, "exec")
        (folder / name).write_text(text)
    settings = Settings(**{"api": "torch.cuda.amp", "unsafe": True, **options})
    return migrate_project([folder], settings=settings)


def squeezed(text: str) -> str:
    """Return a text without indentation and blank lines."""
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


def shows(text: str, part: str) -> bool:
    """Tell whether a text holds a part; a line of the part that begins with ``...`` stands for any lines."""
    pattern = re.sub(r"\\\.\\\.\\\..*", r"(.*\n)*?.*", re.escape(squeezed(part)))
    return re.search(pattern, squeezed(text)) is not None


@pytest.mark.parametrize("rule", REWRITES)
def test_example_becomes_what_the_page_says(rule: str, tmp_path: Path) -> None:
    files = placed(rule)
    result = migrated(files, tmp_path, **OPTIONS.get(rule, {}))
    after = {Path(change.path).name: change.text for change in result.changes}

    assert rule in {f.code for f in result.findings if Path(f.path).name in files}
    assert not re.search("^ *(from|import) apex", "\n".join(after.values()), re.M)
    for name, instead in code(rule, "Use instead").items():
        if instead.startswith("("):
            assert not shows(after[name], code(rule, "Example")[name])
        else:
            assert shows(after[name], instead), after[name]


@pytest.mark.parametrize("rule", REPORTS)
def test_finding_of_the_page_comes_at_its_example(rule: str, tmp_path: Path) -> None:
    files = placed(rule)
    result = migrated(files, tmp_path, **OPTIONS.get(rule, {}))

    found = [(Path(f.path).name, f.span.line) for f in result.findings if f.code == rule]
    assert any(place in example_lines(rule) for place in found), result.findings


def example_lines(rule: str) -> set[tuple[str, int]]:
    """Return the files and lines that an example takes in its program."""
    lines = set()
    for name, part in code(rule, "Example").items():
        text = programs(rule)[name].splitlines()
        first = next(n for n, line in enumerate(text, 1) if EXAMPLE in line)
        lines |= {(name, first + n) for n in range(len(part.splitlines()))}
    return lines


@pytest.mark.parametrize("rule", LEFT)
def test_example_is_left_and_migrates_as_the_page_says(rule: str, tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "advised").mkdir()
    left = migrated(placed(rule), tmp_path / "before")
    advised = migrated(placed(rule, "Use instead"), tmp_path / "advised")

    assert {f.code for f in left.findings if f.status is Status.LEFT} == {"AMP101", rule}
    assert [Path(change.path).name for change in left.changes] == ["another.py"]
    assert [f for f in advised.findings if f.status is Status.LEFT] == []
    assert len(advised.changes) == 2


def test_rewrite_that_fails_its_check_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule that has no example: no program is known that gets it."""
    monkeypatch.setattr(checked_text, "check", lambda *_: "line 1: it does not compile")
    result = migrated({MAIN: WHOLE}, tmp_path)

    assert not result.changes
    assert {f.code for f in result.findings if f.status is Status.LEFT} == {"AMP101", "AMP910"}


def test_every_rule_has_an_example() -> None:
    assert {rule.code for rule in RULES} - {"AMP910"} == set(PROGRAMS)
