"""The report for people."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate

from amp_migrate.output.place import Places
from amp_migrate.output.style import Style
from amp_migrate.output.text import text
from amp_migrate.plan.model import Finding, Place, Status
from amp_migrate.report import FileChange, Report
from amp_migrate.source.file import Source
from amp_migrate.source.span import Span

ROOT = Path(__file__).resolve().parents[2]


class TestReport:
    def test_text_tells_what_needs_eyes_and_counts_the_rest(
        self, put: Put, engine: FakeEngine
    ) -> None:
        put("a.py", "old()\n  stays()\nmistake()\n\nstays()\n")
        put("b/c.py", "old()\nremark()\n")

        done = amp_migrate(".", "--diff")

        assert done.stderr == (
            "a.py:3:3 AMP901 left: about stays()\n"
            "    do this\n"
            "    or that\n"
            "    also at line 6\n"
            "\n"
            "a.py:4:1 AMP201 fixed: about mistake()\n"
            "    do this\n"
            "    or that\n"
            "\n"
            "b/c.py:3:1 AMP102 note: about remark()\n"
            "    do this\n"
            "    or that\n"
            "\n"
            "found 5 uses of Apex: 2 migrated, 1 fixed, 2 left (in 2 files)\n"
            "would rewrite 2 files\n"
        )

    def test_cause_is_said_once_with_all_that_it_keeps(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM.replace("r.step()", "r.step(lambda: loss)"))
        (folder / "unused.py").write_text("from apex import amp\n\nprint(1)\n")

        done = amp_migrate(".", "--diff")

        report = done.stderr.split("\n\n")[0].splitlines()
        assert report[0].startswith("train.py:13:5 AMP906 left: ")
        assert report[-2:] == [
            "    this keeps 3 places as they are:",
            "      train.py:2, 7, 11",
        ]
        assert "found 4 uses of Apex: 1 migrated, 0 fixed, 3 left" in done.stderr
        assert "-from apex import amp" in done.stdout

    def test_alike_in_several_files_is_said_once(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "remark()\n")
        put("b.py", "remark()\n\nremark()\n")

        report = amp_migrate(".", "--diff").stderr

        assert report.count("about remark()") == 1
        assert "    also at b.py:2, 4\n" in report

    def test_line_is_named_once(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "remark(); remark\n")
        span = Span(2, 0, 2, 8)
        named = Finding("a.py", span, "AMP102", Status.NOTE, "about remark()", "do this\nor that")
        report = Report(
            sources={"a.py": Source.read("a.py")},
            findings=[named, replace(named, span=Span(2, 10, 2, 16))],
        )

        assert "also at" not in text(report, Style(False))

    def test_lines_in_a_message_are_those_of_the_file_after_the_run(
        self, put: Put, engine: FakeEngine
    ) -> None:
        put("a.py", "old()\nstays()\n")
        put("b.py", "stays()\n")
        before = {name: Source.read(name) for name in ("a.py", "b.py")}
        place = Place("a.py", Span(3, 0, 3, 7))
        message = f"because of {place}"
        findings = [
            Finding(path, Span(2, 0, 2, 5), "AMP901", Status.LEFT, message, named=(place,))
            for path in before
        ]
        after = before["a.py"].text.replace("old()", "first()\nnew()")
        change = FileChange(before["a.py"], after, after.encode())
        report = Report(sources=before, findings=findings, changes=[change])

        pending = [Places(report).said(finding)[0] for finding in findings]
        report.written = True
        written = [Places(report).said(finding)[0] for finding in findings]

        assert pending == ["because of line 3", "because of a.py:3"]
        assert written == ["because of line 4", "because of a.py:4"]

    def test_no_path_is_absolute(self, put: Put, engine: FakeEngine, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "a.py").write_text("import apex\nstays()\n")

        assert amp_migrate(str(elsewhere), "--diff").stderr.startswith("../elsewhere/a.py:2:1 AMP")

    def test_places_are_those_of_the_file_after_the_run(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nstays()\n")

        assert "a.py:3:1 AMP901" in amp_migrate(".", "--diff").stderr
        assert "a.py:4:1 AMP901" in amp_migrate(".").stderr

    def test_summary_says_what_happened_to_the_files(self, put: Put, engine: FakeEngine) -> None:
        for name, line in (("a.py", "old()\n"), ("b.py", "stays()\n"), ("c.py", "stays()\n")):
            put(name, line)
        Path("d.py").write_text("import os\n")

        assert "would rewrite 1 file of 4; 2 files with Apex stay unchanged\n" in (
            amp_migrate(".", "--diff").stderr
        )
        assert "rewrote 1 file of 4; 2 files with Apex stay unchanged\n" in amp_migrate(".").stderr

    def test_concise_has_a_line_for_every_finding(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nstays()\n")

        lines = amp_migrate(".", "--diff", "--output-format", "concise").stderr.splitlines()

        assert lines[:2] == [
            "a.py:2:1 AMP101 migrated: about old()",
            "a.py:3:1 AMP901 left: about stays()",
        ]

    def test_quiet_says_nothing(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nstays()\n")

        done = amp_migrate(".", "-q")

        assert (done.output, done.exit_code) == ("", 1)

    def test_report_can_go_into_a_file(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "stays()\n")

        done = amp_migrate(".", "--output-file", "report.txt")

        assert Path("report.txt").read_text().startswith("a.py:2:1 AMP901 left: about stays()\n")
        assert "AMP901" not in done.stderr
        assert "found 1 use of Apex:" in done.stderr

    def test_patch_can_go_into_a_file(self, put: Put, engine: FakeEngine) -> None:
        """With --diff the patch is the output; what is said about it stays on the terminal."""
        put("a.py", "old()\nstays()\n")
        Path("migration.patch").write_text("an older and longer patch\n" * 50)

        done = amp_migrate(".", "--diff", "-o", "migration.patch", "--color")

        assert done.stdout == ""
        assert Path("migration.patch").read_text().startswith("--- a/a.py\n+++ b/a.py\n@@ ")
        assert "older" not in Path("migration.patch").read_text()
        assert "AMP901" in done.stderr

    @pytest.mark.parametrize("name", ["missing/report.txt", "folder"])
    @pytest.mark.parametrize("form", ["text", "json", "sarif"])
    def test_output_that_cannot_be_opened_stops_before_anything_is_written(
        self, put: Put, engine: FakeEngine, name: str, form: str
    ) -> None:
        file = put("a.py", "old()\n")
        Path("folder").mkdir()

        done = amp_migrate(".", "-o", name, "--output-format", form)

        assert done.stderr.startswith(f"Error: {name}: ")
        assert done.stderr.endswith("; nothing was written\n")
        assert done.stderr.count("\n") == 1
        assert done.exit_code == 2
        assert "new()" not in file.read_text()

    def test_output_of_a_run_that_fails_is_not_touched(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\n")
        Path("old.txt").write_text("kept")

        for name in ("old.txt", "new.txt"):
            done = amp_migrate(".", "--select", "AMP777", "-o", name)
            assert done.exit_code == 2

        assert Path("old.txt").read_text() == "kept"
        assert not Path("new.txt").exists()

    def test_reader_that_goes_away_makes_no_traceback(self, folder: Path) -> None:
        """As `amp-migrate --diff | head -1` does."""
        (folder / "a.py").write_text(APEX_PROGRAM + "# a long comment\n" * 20_000)
        (folder / "b.py").write_text(APEX_PROGRAM)
        reading, writing = os.pipe()
        os.close(reading)
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "amp_migrate", "--diff"]

        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False
        )

        os.close(writing)
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
        assert done.returncode == 1

    @pytest.mark.parametrize(
        ("variables", "arguments", "coloured"),
        [
            ({}, (), False),
            ({"FORCE_COLOR": "1"}, (), True),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
            ({"NO_COLOR": "1"}, ("--color",), True),
            ({"FORCE_COLOR": "1"}, ("--no-color",), False),
            ({"NO_COLOR": "", "FORCE_COLOR": "1"}, (), True),
        ],
    )
    def test_colour(
        self,
        put: Put,
        engine: FakeEngine,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        arguments: tuple[str, ...],
        coloured: bool,
    ) -> None:
        put("a.py", "stays()\n")
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

        assert ("\033[1;31mAMP901\033[0m" in amp_migrate(".", *arguments).stderr) is coloured

    def test_plan_is_shown_and_nothing_written(self, put: Put, engine: FakeEngine) -> None:
        file = put("a.py", "old()\n")
        engine.units = [["a.py"]]

        done = amp_migrate(".", "--show-plan")

        assert done.stdout == "group 1: 0 uses of Apex in 1 file\n  a.py\n"
        assert done.exit_code == 0
        assert "old()" in file.read_text()

    def test_name_that_is_no_text_is_printed(self, folder: Path) -> None:
        name = os.fsdecode(b"caf\xe9.py")
        (folder / name).write_text("from apex import amp\nprint 'a'\n")

        done = amp_migrate(".", "-q")

        assert done.stderr_bytes.startswith(b"caf\xe9.py: error: ")


def notebook(text: str) -> bytes:
    """Lay `text` out as Jupyter does, as one cell among others."""
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Training with apex"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [],
            "source": ["!pip install torch\n", "%matplotlib inline"],
        },
        {
            "cell_type": "code",
            "execution_count": 2,
            "metadata": {},
            "outputs": [{"text": ["from apex import amp"]}],
            "source": text.rstrip("\n").splitlines(keepends=True),
        },
    ]
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


class TestNotebook:
    def test_cells_are_migrated_and_the_rest_keeps_its_bytes(self, folder: Path) -> None:
        before = notebook(APEX_PROGRAM)
        (folder / "a.ipynb").write_bytes(before)

        done = amp_migrate(".", "--diff")
        subprocess.run(["git", "apply"], input=done.stdout_bytes, check=True)

        assert (folder / "a.ipynb").read_bytes() == notebook(NATIVE_PROGRAM)

    def test_places_name_the_cell(self, folder: Path, engine: FakeEngine) -> None:
        (folder / "a.ipynb").write_bytes(notebook("import apex\nstays()\n"))

        assert "a.ipynb:cell 3:2:1 AMP901 left" in amp_migrate(".").stderr

    def test_places_follow_the_cells_that_were_written(
        self, folder: Path, engine: FakeEngine
    ) -> None:
        (folder / "a.ipynb").write_bytes(notebook("import apex\nold()\nstays()\n"))

        assert "a.ipynb:cell 3:3:1 AMP901 left" in amp_migrate(".", "--diff").stderr
        assert "a.ipynb:cell 3:4:1 AMP901 left" in amp_migrate(".").stderr

    def test_invalid_notebook_is_one_line(self, folder: Path) -> None:
        (folder / "a.ipynb").write_bytes(notebook(APEX_PROGRAM)[:-30])

        done = amp_migrate(".", "-q")

        assert done.stderr.startswith("a.ipynb: error: is not a valid notebook: ")
        assert done.stderr.count("\n") == 1
        assert done.exit_code == 2
