"""The commands around the codemod, and what they load."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate

ROOT = Path(__file__).resolve().parents[2]


class TestCommands:
    def test_help_lists_the_options_and_the_other_commands(self) -> None:
        done = amp_migrate("-h")

        assert done.stdout.startswith("Usage: amp-migrate [OPTIONS] PATH...")
        for word in ("--diff", "verify", "explain", "convert-checkpoint", "Exit codes"):
            assert word in done.stdout

    def test_options_without_a_path_do_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.argv", ["amp-migrate", "--check"])
        done = amp_migrate("--check")

        assert done.exit_code == 0
        assert done.stdout == ""

    def test_wrong_option_names_the_program(self) -> None:
        assert "Usage: amp-migrate [OPTIONS] PATH..." in amp_migrate("--nonsense").stderr

    def test_folder_that_is_called_like_a_command(self, put: Put, engine: FakeEngine) -> None:
        put("explain/a.py", "old()\n")

        assert "+++ b/explain/a.py" in amp_migrate("./explain", "--diff").stdout
        assert "+++ b/explain/a.py" in amp_migrate("--diff", "explain").stdout

    def test_explain_shows_a_rule_in_full(self) -> None:
        done = amp_migrate("explain", "amp103")

        assert done.stdout.startswith("AMP103: ")
        for heading in ("Safety: faithful\n", "\nWhat it does\n", "\nWhy\n", "\nUse instead\n"):
            assert heading in done.stdout

    def test_every_rule_is_listed_and_explained(self) -> None:
        listed = [
            line.split()[0]
            for line in amp_migrate("explain").stdout.splitlines()
            if line.startswith("  AMP")
        ]

        assert listed == sorted(listed)
        assert len(listed) > 15
        assert amp_migrate("--list-rules").stdout == amp_migrate("explain").stdout
        for code in listed:
            page = amp_migrate("explain", code).stdout
            assert page.startswith(f"{code}: ")
            assert len(page.splitlines()) > 10

    def test_unknown_rule_exits_2(self) -> None:
        done = amp_migrate("explain", "AMP000")

        assert "There is no rule AMP000" in done.stderr
        assert done.exit_code == 2

    def test_verify_gets_its_arguments_untouched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import amp_migrate.equivalence.cli as check

        seen: list[list[str]] = []
        monkeypatch.setattr(check, "main", lambda arguments: seen.append(arguments) or 3)
        arguments = ["--steps", "3", "--", "python", "train.py", "--help", "-h", "--", "--diff"]

        done = amp_migrate("verify", *arguments)

        assert seen == [arguments]
        assert done.exit_code == 3

    def test_command_that_needs_torch_says_how_to_get_it(
        self, put: Put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put("a.pt", "")
        monkeypatch.delitem(sys.modules, "amp_migrate.checkpoint", raising=False)
        monkeypatch.setitem(sys.modules, "torch", None)

        done = amp_migrate("convert-checkpoint", "a.pt", "b.pt")

        assert done.stderr == (
            "Error: convert-checkpoint needs torch: pip install 'amp-migrate[verify]'\n"
        )
        assert done.exit_code == 2


def imported(*arguments: str) -> set[str]:
    """Return the modules that are loaded after a run in a process of its own."""
    code = (
        "import sys\n"
        "from amp_migrate.cli import main\n"
        f"main({list(arguments)!r}, standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    return set(done.stderr.split())


class TestLight:
    HEAVY = frozenset({"libcst", "torch", "numpy", "pyflakes", "matplotlib"})

    @pytest.mark.parametrize("arguments", [("--version",), ("-h",), ("explain", "AMP103")])
    def test_talking_about_itself_loads_nothing_heavy(self, arguments: tuple[str, ...]) -> None:
        assert not imported(*arguments) & self.HEAVY

    def test_tree_without_apex_does_not_load_the_engine(self, folder: Path) -> None:
        (folder / "a.py").write_text("import torch\n")

        loaded = imported(".")

        assert not loaded & {*self.HEAVY, "amp_migrate.engine", "pathspec"}

    def test_native_code_loads_no_syntax_tree_library(self, folder: Path) -> None:
        (folder / "a.py").write_text(NATIVE_PROGRAM)

        assert not imported(".", "--check") & self.HEAVY

    def test_version(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "amp_migrate", "--version"],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

        assert done.stdout == "amp-migrate 0.1.0\n"


class TestHooks:
    def commands(self) -> list[list[str]]:
        """Return what pre-commit would run."""
        text = (ROOT / ".pre-commit-hooks.yaml").read_text()
        entries = re.findall(r"^  entry: amp-migrate *(.*)$", text, re.MULTILINE)
        arguments = re.findall(r"^  args: (.*)$", text, re.MULTILINE)
        return [
            [*entry.split(), *json.loads(listed)]
            for entry, listed in zip(entries, arguments, strict=True)
        ]

    def test_there_is_one_that_writes_and_one_that_checks(self) -> None:
        assert self.commands() == [["."], ["--check", "."]]

    def test_project_without_apex_passes(self, folder: Path) -> None:
        (folder / "a.py").write_text("import torch\n")

        assert [amp_migrate(*command).exit_code for command in self.commands()] == [0, 0]

    def test_check_fails_and_writes_nothing(self, folder: Path) -> None:
        (folder / "a.py").write_text(APEX_PROGRAM)

        assert amp_migrate(*self.commands()[1]).exit_code == 1
        assert (folder / "a.py").read_text() == APEX_PROGRAM
