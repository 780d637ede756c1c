"""What a terminal gets besides the report: words to complete, and a line about what takes long."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from shell_support import FakeEngine, Put, amp_migrate

from amp_migrate.commands.cli import main
from amp_migrate.output import progress


def offered(words: str) -> set[str]:
    """Return what a shell is offered for the last of some words."""
    *before, last = words.split(" ")
    shell = ShellComplete(main, {}, "amp-migrate", "_AMP_MIGRATE_COMPLETE")
    return {item.value for item in shell.get_completions(before, last)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ver", "verify"),
        ("conv", "convert-checkpoint"),
        ("--dry", "--dry-run"),
        ("explain amp30", "AMP301"),
        ("--select AMP1,AMP20", "AMP1,AMP203"),
        ("--ignore AMP30", "AMP304"),
        ("--output-format sa", "sarif"),
        ("verify --inj", "--inject-overflow"),
        ("verify --device c", "cuda"),
        ("verify --steps 3 --no-", "--no-casts"),
        ("convert-checkpoint --mic", "--micro-batches"),
    ],
)
def test_words_are_completed(words: str, expected: str) -> None:
    assert expected in offered(words)


@pytest.mark.parametrize("words", ["--diff ver", "train.py ver", "verify -- ver", "explain ver"])
def test_command_is_offered_in_its_place_alone(words: str) -> None:
    assert "verify" not in offered(words)


def test_every_command_can_be_completed() -> None:
    assert {"verify", "explain", "convert-checkpoint", "report"} <= offered("")
    assert "codemod" not in offered("")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_long_work_says_what_it_is_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phase and files; and the line is gone at the end."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_INTERVAL", 0.01)
    screen = Terminal()
    with progress.shown(screen):
        progress.at("migrating", 12)
        deadline = time.monotonic() + 20
        while "migrating" not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)

    assert "\r\x1b[2Kmigrating, 12 files, 0 s" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize("screen", [Terminal(), io.StringIO()])
def test_short_work_and_pipes_see_nothing(screen: io.StringIO) -> None:
    with progress.shown(screen):
        progress.at("migrating", 12)

    assert screen.getvalue() == ""


def test_run_tells_its_phases(
    put: Put, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int]] = []
    monkeypatch.setattr(progress, "at", lambda *said: told.append(said))
    put("a.py", "old()\n")
    Path("b.py").write_text("import os\n")

    amp_migrate(".", "--diff")

    assert [phase for phase, _ in told][:2] == ["reading", "reading"]
    assert ("migrating", 1) in told
    assert told[-1][0] == "checking that a second run changes nothing"
