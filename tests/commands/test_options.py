"""Settings from the command line and the project, and text on stdin."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate


class TestStdin:
    def test_text_goes_through(self, folder: Path) -> None:
        done = amp_migrate("-", stdin=APEX_PROGRAM.encode())

        assert done.stdout == NATIVE_PROGRAM
        assert done.exit_code == 0

    @pytest.mark.parametrize("data", [b"", b"x = 1\r\n", b"\xef\xbb\xbfx", b"print 'a'", b"\xff"])
    def test_other_text_comes_out_as_it_was(self, folder: Path, data: bytes) -> None:
        done = amp_migrate("-", stdin=data)

        assert done.stdout_bytes == data
        assert done.exit_code == 0

    def test_unreadable_apex_text_comes_out_as_it_was(self, folder: Path) -> None:
        data = b"from apex import amp\nprint 'a'\n"

        done = amp_migrate("-", "--stdin-filename", "a/train.py", stdin=data)

        assert done.stdout_bytes == data
        assert done.stderr.startswith("a/train.py: error: line 2")
        assert done.exit_code == 2

    def test_patch_names_the_file(self, folder: Path, engine: FakeEngine) -> None:
        done = amp_migrate("-", "--diff", "--stdin-filename", "src/a.py", stdin=b"old()\n")

        assert done.stdout.startswith("--- a/src/a.py\n+++ b/src/a.py\n")

    def test_notebook_is_known_by_its_name(self, folder: Path, engine: FakeEngine) -> None:
        data = b'{"cells": [{"cell_type": "code", "source": "old()"}]}'

        done = amp_migrate("-", "--stdin-filename", "a.ipynb", stdin=data)

        assert done.stdout == '{"cells": [{"cell_type": "code", "source": "first()\\nnew()"}]}'

    @pytest.mark.parametrize("arguments", [("-", "a.py"), ("-", "--output-format", "json")])
    def test_stdout_holds_one_thing(self, put: Put, arguments: tuple[str, ...]) -> None:
        put("a.py", "")

        assert amp_migrate(*arguments).exit_code == 2


class TestSettings:
    def test_command_line_wins_over_the_file(self, put: Put, engine: FakeEngine) -> None:
        put("src/a.py", "old()\n")
        Path("pyproject.toml").write_text(
            "[tool.amp-migrate]\nfixes = false\nscaler = 'module'\nignore = ['AMP1']\n"
        )

        amp_migrate("src", "--fixes", "--ignore", "AMP201, AMP203", "--check")

        assert engine.settings is not None
        assert engine.settings.fixes is True
        assert engine.settings.scaler == "module"
        assert engine.settings.ignore == ("AMP201", "AMP203")

    @pytest.mark.parametrize(
        ("config", "arguments", "message"),
        [
            ("[tool.amp-migrate]\nfix = 1\n", (), "tool.amp-migrate.fix: unknown key"),
            ("", ("--select", "AMP1,XYZ"), "no rule begins with XYZ"),
            ("[tool.amp-migrate]\nignore = ['B1']\n", (), "no rule begins with B1"),
            ("", ("--api", "apex"), "'apex' is not one of"),
            ("", ("--output-format", "json", "--diff"), "needs --output-file"),
            ("", ("--unknown",), "No such option"),
        ],
    )
    def test_wrong_settings_exit_2(
        self, put: Put, config: str, arguments: tuple[str, ...], message: str
    ) -> None:
        put("a.py", "")
        Path("pyproject.toml").write_text(config)

        done = amp_migrate(".", *arguments)

        assert message in done.stderr
        assert done.exit_code == 2

    @pytest.mark.parametrize(
        ("declared", "arguments", "api", "hint"),
        [
            ("", (), "torch.cuda.amp", "hint: torch >= 2.4 warns about torch.cuda.amp"),
            ("torch>=1.6", (), "torch.cuda.amp", "hint: torch >= 2.4 warns about torch.cuda.amp"),
            ("torch>=2.4", (), "torch.amp", "hint: the project declares torch >= 2.4"),
            ("torch>=2.4", ("--api", "torch.cuda.amp"), "torch.cuda.amp", ""),
            ("", ("--api", "torch.amp"), "torch.amp", ""),
        ],
    )
    def test_spelling_follows_the_torch_of_the_project(
        self, folder: Path, declared: str, arguments: tuple[str, ...], api: str, hint: str
    ) -> None:
        (folder / "requirements.txt").write_text(declared)
        (folder / "train.py").write_text(APEX_PROGRAM)

        done = amp_migrate("train.py", *arguments)

        assert f"{api}.autocast(" in (folder / "train.py").read_text()
        assert (hint in done.stderr) if hint else ("hint" not in done.stderr)

    def test_excluded_files_stay(self, put: Put, engine: FakeEngine) -> None:
        for name in ("a.py", "old/b.py", "build/c.py"):
            put(name, "old()\n")

        done = amp_migrate(
            ".", "build/c.py", "--extend-exclude", "old", "--force-exclude", "--diff"
        )

        assert done.stdout.count("+++ ") == 1
        assert "+++ b/a.py" in done.stdout
