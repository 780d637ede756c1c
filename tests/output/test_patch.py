"""The patch on stdout: what a run would write, byte for byte."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate


class TestDiff:
    def test_patch_is_what_a_run_would_write(self, folder: Path) -> None:
        subprocess.run(["git", "init", "-q"], check=True)
        for name in ("train.py", "a b/é.py"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(APEX_PROGRAM)

        done = amp_migrate(".", "--diff")
        assert (folder / "train.py").read_text() == APEX_PROGRAM
        subprocess.run(["git", "apply"], input=done.stdout_bytes, check=True)

        assert (folder / "train.py").read_text() == NATIVE_PROGRAM
        assert (folder / "a b/é.py").read_text() == NATIVE_PROGRAM
        assert "would rewrite 2 files" in done.stderr

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize(
        ("head", "encoding"),
        [("", "utf-8"), ("", "utf-8-sig"), ("# -*- coding: latin-1 -*-\n\x0c\n", "latin-1")],
    )
    @pytest.mark.parametrize("final", ["\n", ""])
    def test_bytes_outside_the_edits_stay(
        self, folder: Path, newline: str, head: str, encoding: str, final: str
    ) -> None:
        """In a sub-directory, for every encoding and newline: patch and rewrite give the same bytes."""
        subprocess.run(["git", "init", "-q", ".."], check=True)
        file = folder / "train.py"

        def variant(text: str) -> bytes:
            return (head + text.rstrip("\n") + final).replace("\n", newline).encode(encoding)

        file.write_bytes(variant(APEX_PROGRAM))
        patch = amp_migrate(".", "--diff").stdout_bytes
        subprocess.run(["git", "apply", "--whitespace=nowarn"], input=patch, check=True)

        assert file.read_bytes() == variant(NATIVE_PROGRAM)
        file.write_bytes(variant(APEX_PROGRAM))
        amp_migrate(".")
        assert file.read_bytes() == variant(NATIVE_PROGRAM)

    def test_patch_made_in_a_folder_is_applied_from_the_root(self, folder: Path) -> None:
        """`git apply` passes over what lies outside of its folder, so the place is said."""
        subprocess.run(["git", "init", "-q", ".."], check=True)
        for name in ("../train.py", "own.py"):
            (folder / name).write_text(APEX_PROGRAM)

        done = amp_migrate("..", "--diff")
        apply = re.search(r"repository: (git -C \S+ apply)\n", done.stderr)
        assert apply is not None
        subprocess.run(apply[1].split(), input=done.stdout_bytes, check=True)

        assert (folder / "../train.py").read_text() == NATIVE_PROGRAM
        assert (folder / "own.py").read_text() == NATIVE_PROGRAM

    def test_patch_of_files_below_is_applied_where_it_was_made(self, folder: Path) -> None:
        subprocess.run(["git", "init", "-q", ".."], check=True)
        (folder / "own.py").write_text(APEX_PROGRAM)

        done = amp_migrate("--diff")

        assert "git -C" not in done.stderr
        subprocess.run(["git", "apply"], input=done.stdout_bytes, check=True)
        assert (folder / "own.py").read_text() == NATIVE_PROGRAM

    def test_exit_code_is_0_though_sites_are_left(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nstays()\n")

        assert amp_migrate(".", "--diff").exit_code == 0

    def test_with_check_exit_code_is_1(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n")

        done = amp_migrate(".", "--diff", "--check")

        assert done.stdout.startswith(
            "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n import apex\n-old()\n"
        )
        assert done.stderr.endswith("exit 1: 1 file would change\n")
        assert done.exit_code == 1

    def test_colour_of_a_patch_needs_a_terminal_or_the_option(
        self, put: Put, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """FORCE_COLOR is set in many CI systems, where the patch goes into a pipe."""
        put("a.py", "old()\n")
        monkeypatch.setenv("FORCE_COLOR", "1")

        done = amp_migrate(".", "--diff")
        assert "\033" not in done.stdout
        assert "\033[32m1 migrated\033[0m" in done.stderr
        assert "\033[31m-old()\033[0m\n" in amp_migrate(".", "--diff", "--color").stdout
        assert "\033" not in amp_migrate(".", "--diff", "--no-color").output
