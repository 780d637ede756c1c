"""The command line: what is written, what is printed where, and what the exit code says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate

ROOT = Path(__file__).resolve().parents[2]


class TestWrite:
    def test_program_is_rewritten_in_place(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        done = amp_migrate("train.py")

        assert (folder / "train.py").read_text() == NATIVE_PROGRAM
        assert done.stdout == ""
        assert "found 3 Apex sites: 3 migrated, 0 fixed, 0 left (in 1 file)\n" in done.stderr
        assert "rewrote 1 file\n" in done.stderr
        assert done.exit_code == 0

    def test_second_run_changes_nothing(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)
        amp_migrate(".")
        before = (folder / "train.py").stat()

        done = amp_migrate(".", "--check")

        assert (folder / "train.py").stat().st_ino == before.st_ino
        assert done.stderr == "found no Apex AMP code\n"
        assert done.exit_code == 0

    def test_files_without_a_change_are_not_written(self, put: Put, engine: FakeEngine) -> None:
        changed, kept = put("a.py", "old()\n"), put("b.py", "other()\n")
        kept.chmod(0o444)
        before = kept.stat()

        amp_migrate(".")

        assert changed.read_text() == "import apex\nfirst()\nnew()\n"
        assert kept.stat() == before

    def test_file_that_cannot_be_written_keeps_its_whole_unit(
        self, put: Put, engine: FakeEngine
    ) -> None:
        """Half a unit would train wrongly, so the files that work with the locked one stay too."""
        for name in ("a.py", "b.py", "c.py"):
            put(name, "old()\n")
        put("b.py", "old()\n").chmod(0o444)
        engine.units = [["a.py", "b.py"], ["c.py"]]

        done = amp_migrate(".")

        assert [Path(name).read_text().count("new()") for name in ("a.py", "b.py", "c.py")] == [
            0,
            0,
            1,
        ]
        assert "b.py: error: stays as it was: is read-only\n" in done.stderr
        assert "a.py: error: stays as it was, as a file it works with does\n" in done.stderr
        assert done.exit_code == 2

    def test_change_that_a_second_run_would_make_again_is_refused(
        self, put: Put, engine: FakeEngine
    ) -> None:
        file = put("a.py", "old()\n")
        engine.unstable = ["a.py"]

        done = amp_migrate(".")

        assert "new()" not in file.read_text()
        assert "a.py: error: stays as it was: a second run would change it again" in done.stderr
        assert done.exit_code == 2

    def test_text_the_encoding_lacks_is_refused(self, put: Put, engine: FakeEngine) -> None:
        file = put("a.py", "# coding: latin-1\n'é'\nold()\n", encoding="latin-1")
        engine.statuses = ()
        before = file.read_bytes()
        replaced = engine.migrate

        def with_euro(*arguments: object) -> object:
            result = replaced(*arguments)
            result.outcomes[0].after = "'€'\n"
            return result

        vars(sys.modules["amp_migrate.engine"])["migrate"] = with_euro
        done = amp_migrate(".")

        assert file.read_bytes() == before
        assert done.exit_code == 2

    def test_fault_of_the_engine_writes_nothing_and_exits_2(
        self, put: Put, engine: FakeEngine
    ) -> None:
        file = put("a.py", "old()\n")
        engine.crash = True

        done = amp_migrate(".")

        assert "old()" in file.read_text()
        assert "a fault of amp-migrate itself; nothing was written" in done.stderr
        assert done.exit_code == 2


class TestProject:
    def test_caller_that_does_not_speak_of_amp_passes_the_scaler_on(self, folder: Path) -> None:
        """The file between the two that use Apex has to hand the scaler through."""
        (folder / "main.py").write_text(
            "import torch\nfrom apex import amp\nfrom middle import epoch\n\n"
            "model = torch.nn.Linear(4, 2).cuda()\n"
            "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "model, optimizer = amp.initialize(model, optimizer, opt_level='O1')\n"
            "epoch(model, optimizer)\n"
        )
        (folder / "middle.py").write_text(
            "from engine import train\n\n\ndef epoch(model, optimizer):\n    train(model, optimizer)\n"
        )
        (folder / "engine.py").write_text(
            "import torch\nfrom apex import amp\n\n\ndef train(model, optimizer):\n"
            "    loss = model(torch.randn(8, 4).cuda()).sum()\n"
            "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n"
            "    optimizer.step()\n"
        )
        (folder / "beside.py").write_text("import os\n")

        amp_migrate(".")

        assert "def epoch(model, optimizer, scaler):\n" in (folder / "middle.py").read_text()
        assert "    train(model, optimizer, scaler)\n" in (folder / "middle.py").read_text()
        assert "scaler.step(optimizer)" in (folder / "engine.py").read_text()
        assert (folder / "beside.py").read_text() == "import os\n"


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


class TestCheck:
    @pytest.mark.parametrize(
        ("text", "code", "reason"),
        [
            ("other()\n", 0, ""),
            ("remark()\n", 0, ""),
            ("old()\n", 1, "exit 1: 1 file would change\n"),
            ("stays()\n", 1, "exit 1: 1 site left for a human\n"),
            (
                "old()\nstays()\nstays()\n",
                1,
                "exit 1: 1 file would change and 2 sites left for a human\n",
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

        assert done.stderr.endswith("exit 1: 1 site left for a human\n")
        assert done.exit_code == 1

    def test_exit_zero_says_what_it_hides(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "stays()\n")

        done = amp_migrate(".", "--exit-zero")

        assert done.stderr.endswith("exit 0 (--exit-zero): 1 site left for a human\n")
        assert done.exit_code == 0


class TestProblems:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"from apex import amp\nprint 'a'\n", "line 2: not Python 3"),
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
            "a.py:4:1 AMP201 fixed: about mistake()\n"
            "    do this\n"
            "    or that\n"
            "\n"
            "b/c.py:3:1 AMP102 note: about remark()\n"
            "    do this\n"
            "    or that\n"
            "\n"
            "found 5 Apex sites: 2 migrated, 1 fixed, 2 left (in 2 files)\n"
            "would rewrite 2 files\n"
        )

    def test_places_are_those_of_the_file_after_the_run(self, put: Put, engine: FakeEngine) -> None:
        put("a.py", "old()\nstays()\n")

        assert "a.py:3:1 AMP901" in amp_migrate(".", "--diff").stderr
        assert "a.py:4:1 AMP901" in amp_migrate(".").stderr

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

        done = amp_migrate(".", "--diff", "--output-file", "report.txt")

        assert Path("report.txt").read_text().startswith("a.py:2:1 AMP901 left: about stays()\n")
        assert "AMP901" not in done.stderr
        assert "found 1 Apex site:" in done.stderr

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

        assert done.stdout == "unit 1\n  files:\n    - a.py\n  roles:\n"
        assert done.exit_code == 0
        assert "old()" in file.read_text()

    def test_name_that_is_no_text_is_printed(self, folder: Path) -> None:
        name = os.fsdecode(b"caf\xe9.py")
        (folder / name).write_text("from apex import amp\nprint 'a'\n")

        done = amp_migrate(".", "-q")

        assert done.stderr_bytes.startswith(b"caf\xe9.py: error: ")


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

    def test_invalid_notebook_is_one_line(self, folder: Path) -> None:
        (folder / "a.ipynb").write_bytes(notebook(APEX_PROGRAM)[:-30])

        done = amp_migrate(".", "-q")

        assert done.stderr.startswith("a.ipynb: error: is not a valid notebook: ")
        assert done.stderr.count("\n") == 1
        assert done.exit_code == 2


def notebook(text: str) -> bytes:
    """Lay `text` out as Jupyter does, as one cell among others."""
    import json

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


class TestCommands:
    def test_help_lists_the_options_and_the_other_commands(self) -> None:
        done = amp_migrate("-h")

        assert done.stdout.startswith("Usage: amp-migrate [OPTIONS] PATH...")
        for word in ("--diff", "verify", "explain", "convert-checkpoint", "Exit codes"):
            assert word in done.stdout

    def test_options_without_a_path_do_nothing(self) -> None:
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
