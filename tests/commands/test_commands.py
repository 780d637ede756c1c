"""The commands around the codemod, and what they load."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from shell_support import NATIVE_PROGRAM, FakeEngine, Put, amp_migrate

ROOT = Path(__file__).resolve().parents[2]


class TestCommands:
    def test_help_lists_the_options_and_the_other_commands(self) -> None:
        done = amp_migrate("-h")

        assert done.stdout.startswith("Usage: amp-migrate [OPTIONS] [PATH]...")
        for word in ("--diff", "verify", "explain", "convert-checkpoint", "Exit codes"):
            assert word in done.stdout

    @pytest.mark.parametrize("option", ["--check", "--diff", "--dry-run", "--no-fixes"])
    def test_no_path_means_the_current_folder(
        self, put: Put, engine: FakeEngine, option: str
    ) -> None:
        """A hook whose arguments someone replaced must not pass for having nothing to do."""
        file = put("a.py", "old()\n")

        done = amp_migrate(option)

        assert "1 migrated" in done.stderr
        assert ("new()" in file.read_text()) == (option == "--no-fixes")
        assert done.stdout.startswith("--- a/a.py") == (option in ("--diff", "--dry-run"))

    def test_the_name_alone_prints_the_help(self, put: Put, engine: FakeEngine) -> None:
        file = put("a.py", "old()\n")

        done = amp_migrate()

        assert done.stdout == amp_migrate("--help").stdout
        assert done.exit_code == 0
        assert "old()" in file.read_text()

    def test_wrong_option_names_the_program(self) -> None:
        assert "Usage: amp-migrate [OPTIONS] [PATH]..." in amp_migrate("--nonsense").stderr

    @pytest.mark.parametrize(
        ("typed", "meant"),
        [("verfy", "verify"), ("explian", "explain"), ("convert_checkpoint", "convert-checkpoint")],
    )
    def test_command_with_a_slip_in_it_is_named(self, folder: Path, typed: str, meant: str) -> None:
        done = amp_migrate(typed, "AMP101")

        assert f"There is no file or folder '{typed}'. Did you mean the command {meant}?" in (
            done.stderr
        )
        assert done.exit_code == 2

    def test_closed_standard_input_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m amp_migrate - <&-"],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )

        assert (done.stderr, done.returncode) == ("Error: standard input is closed\n", 2)

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
            f"Error: convert-checkpoint needs torch: {shlex.quote(sys.executable)} -m pip install "
            "torch numpy matplotlib\n"
        )
        assert done.exit_code == 2


def imported(*arguments: str) -> set[str]:
    """Return the modules that are loaded after a run in a process of its own."""
    code = (
        "import sys\n"
        "from amp_migrate.commands.cli import main\n"
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
