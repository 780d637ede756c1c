"""Exit codes, what decided them, and files that cannot be migrated."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate

from amp_migrate.plan.model import Status


class TestCheck:
    @pytest.mark.parametrize(
        ("text", "code", "reason"),
        [
            ("other()\n", 0, ""),
            ("remark()\n", 0, ""),
            ("old()\n", 1, "exit 1: 1 file would change\n"),
            ("stays()\n", 1, "exit 1: 1 place left for a human\n"),
            (
                "old()\nstays()\nstays()\n",
                1,
                "exit 1: 1 file would change and 2 places left for a human\n",
            ),
        ],
    )
    def test_exit_code_and_what_decided_it(
        self, put: Put, engine: FakeEngine, text: str, code: int, reason: str
    ) -> None:
        file = put("a.py", text)
        before = file.read_bytes()

        done = amp_migrate(".", "--check")

        assert done.exit_code == code
        assert done.stderr.endswith(reason or "\n")
        assert file.read_bytes() == before

    def test_what_is_left_decides_without_the_option_too(
        self, put: Put, engine: FakeEngine
    ) -> None:
        put("a.py", "old()\nstays()\n")

        done = amp_migrate(".")

        assert done.stderr.endswith("exit 1: 1 place left for a human\n")
        assert done.exit_code == 1

    def test_exit_zero_says_what_it_hides(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "stays()\n")

        done = amp_migrate(".", "--exit-zero")

        assert done.stderr.endswith("exit 0 (--exit-zero): 1 place left for a human\n")
        assert done.exit_code == 0


class TestProblems:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"from apex import amp\nprint 'a'\n", "line 2: not Python 3"),
            (b"import apex\nx.cuda(async=True)\n", "line 2: `async` is a keyword since Python 3.7"),
            (b"from apex import amp\n'\xe9'\n", "is not utf-8"),
            (b"\xff\xfef\x00apex import apex", "is UTF-16"),
        ],
    )
    def test_apex_file_that_cannot_be_read_exits_2(
        self, folder: Path, data: bytes, reason: str
    ) -> None:
        (folder / "a.py").write_bytes(data)
        (folder / "b.py").write_text(APEX_PROGRAM)

        done = amp_migrate(".", "--exit-zero")

        assert f"a.py: error: {reason}" in done.stderr
        assert done.stderr.endswith("exit 2: 1 file could not be migrated\n")
        assert done.exit_code == 2
        assert (folder / "b.py").read_text() == NATIVE_PROGRAM

    @pytest.mark.parametrize(
        "data", [b"# apex of a triangle\nprint 'a'\n", b"# amp\n'\xe9'\n", b"amp(\n", b"amp\x00"]
    )
    def test_other_file_that_cannot_be_read_is_none_of_its_business(
        self, folder: Path, data: bytes
    ) -> None:
        (folder / "a.py").write_bytes(data)

        done = amp_migrate(".", "--check")

        assert done.stderr == "found no Apex AMP code\n"
        assert done.exit_code == 0

    def test_failed_check_of_one_file_is_a_problem(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n")
        engine.failed = {"a.py": "uses 'x', which nothing defines"}

        done = amp_migrate(".")

        assert "a.py: error: uses 'x', which nothing defines\n" in done.stderr
        assert done.exit_code == 2

    def test_missing_path_is_wrong_usage(self, folder: Path) -> None:
        done = amp_migrate("missing.py")

        assert "Path 'missing.py' does not exist" in done.stderr
        assert done.exit_code == 2

    def test_huge_apex_file_is_a_problem(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "#" * 5_000_000)

        done = amp_migrate(".", "-q")

        assert done.stderr == "a.py: error: uses Apex but is larger than 5 MB\n"
        assert done.exit_code == 2

    def test_refused_rewrite_exits_2(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "stays()\n")
        engine.statuses = (("stays()", "AMP910", Status.LEFT),)

        done = amp_migrate(".", "--diff", "--exit-zero")

        assert done.stderr.endswith("exit 2: 1 file could not be migrated\n")
        assert done.exit_code == 2
