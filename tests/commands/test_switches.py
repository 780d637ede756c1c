"""Rules that are chosen or left out, and lines that a comment keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, amp_migrate

WRAPPED = """\
import torch
from apex.parallel import DistributedDataParallel as DDP

model = DDP(torch.nn.Linear(4, 2).cuda())
"""


@pytest.fixture
def project(folder: Path) -> Path:
    """A training with AMP, and a program that only takes DistributedDataParallel from Apex."""
    (folder / "train.py").write_text(APEX_PROGRAM)
    (folder / "wrapped.py").write_text(WRAPPED)
    return folder


class TestFamilies:
    @pytest.mark.parametrize(
        "options", [("--select", "AMP301"), ("--ignore", "AMP1"), ("--select", "AMP3,AMP2")]
    )
    def test_without_amp1_programs_with_amp_stay(
        self, project: Path, options: tuple[str, ...]
    ) -> None:
        amp_migrate(".", *options)

        assert (project / "train.py").read_text() == APEX_PROGRAM
        assert "torch.nn.parallel" in (project / "wrapped.py").read_text()
        assert "apex" not in (project / "wrapped.py").read_text()

    @pytest.mark.parametrize("options", [("--select", "AMP1"), ("--ignore", "AMP3")])
    def test_the_migration_alone_leaves_the_rest(
        self, project: Path, options: tuple[str, ...]
    ) -> None:
        amp_migrate(".", *options)

        assert (project / "train.py").read_text() == NATIVE_PROGRAM
        assert (project / "wrapped.py").read_text() == WRAPPED

    def test_fixes_without_the_migration_are_made_in_apex(self, folder: Path) -> None:
        mistaken = APEX_PROGRAM.replace("    optimizer.step()\n", "        optimizer.step()\n")
        (folder / "train.py").write_text(mistaken)

        done = amp_migrate(".", "--ignore", "AMP1")

        assert "1 fixed" in done.stderr
        assert (folder / "train.py").read_text() == APEX_PROGRAM

    def test_nothing_to_do_is_not_said_as_nothing_found(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        done = amp_migrate(".", "--select", "AMP301")

        assert done.stderr == (
            "the migration (AMP1) is switched off, and the other rules change nothing here\n"
        )

    @pytest.mark.parametrize(
        "options", [("--select", "AMP103"), ("--ignore", "AMP203,AMP104"), ("--select", "AMP10")]
    )
    def test_part_of_the_migration_is_refused(
        self, project: Path, options: tuple[str, ...]
    ) -> None:
        done = amp_migrate(".", *options)

        code = options[1].rpartition(",")[2]
        assert done.stderr == (
            f"Error: {code} cannot be switched by itself: AMP1xx is one migration, whole or not at all; "
            "name AMP1\n"
        )
        assert done.exit_code == 2
        assert (project / "train.py").read_text() == APEX_PROGRAM


EDITED = [
    "from apex import amp",
    "model, optimizer = amp.initialize",
    "    loss = model",
    "    with amp.scale_loss",
    "        scaled_loss.backward()",
    "    optimizer.step()",
]


class TestComment:
    @pytest.mark.parametrize("line", EDITED)
    def test_every_line_that_would_change_counts(self, folder: Path, line: str) -> None:
        kept = "".join(
            text.rstrip("\n") + "  # amp-migrate: skip\n" if text.startswith(line) else text
            for text in APEX_PROGRAM.splitlines(keepends=True)
        )
        assert kept.count("skip") == 1
        (folder / "train.py").write_text(kept)

        done = amp_migrate(".")

        number = next(n for n, text in enumerate(kept.splitlines(), 1) if "skip" in text)
        assert (folder / "train.py").read_text() == kept
        assert f"train.py:{number}:" in done.stderr
        assert "AMP911" in done.stderr
        assert done.exit_code == 1

    def test_line_that_stays_does_not_keep_the_others(self, folder: Path) -> None:
        old, new = "    optimizer.zero_grad()\n", "    optimizer.zero_grad()  # amp-migrate: skip\n"
        (folder / "train.py").write_text(APEX_PROGRAM.replace(old, new))

        amp_migrate(".")

        assert (folder / "train.py").read_text() == NATIVE_PROGRAM.replace(old, new)

    def test_other_training_of_the_file_is_migrated(self, folder: Path) -> None:
        """Two functions, each with an optimizer, a model and an initialize of its own."""

        def training(name: str, comment: str) -> str:
            body = APEX_PROGRAM.partition("# é is no ASCII\n")[2]
            body = body.replace("optimizer.step()", f"optimizer.step(){comment}")
            return f"def {name}():\n" + "".join(f"    {x}\n" for x in body.splitlines()) + "\n\n"

        text = "import torch\nfrom apex import amp\n\n\n"
        kept = training("first", "  # amp-migrate: skip")
        (folder / "train.py").write_text(text + kept + training("second", ""))

        amp_migrate(".")

        after = (folder / "train.py").read_text()
        assert kept in after
        assert after.count("amp.scale_loss") == 1
        assert after.count("scaler.step(optimizer)") == 1


class TestSpelling:
    @pytest.mark.parametrize(
        ("installed", "declared", "spelling", "hint"),
        [
            ("2.13.0+cpu", "", "torch.amp", "hint: torch 2.13.0+cpu is installed here"),
            ("2.4", "", "torch.amp", "hint: torch 2.4 is installed here"),
            ("2.3.1", "", "torch.cuda.amp", "hint: torch >= 2.4 warns about torch.cuda.amp"),
            (None, "", "torch.cuda.amp", "hint: torch >= 2.4 warns about torch.cuda.amp"),
            ("2.13.0", "torch>=1.6", "torch.cuda.amp", "hint: torch >= 2.4 warns"),
            ("2.3.1", "torch>=2.5", "torch.amp", "hint: the project declares torch >= 2.4"),
        ],
    )
    def test_installed_torch_decides_where_the_project_says_nothing(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        installed: str | None,
        declared: str,
        spelling: str,
        hint: str,
    ) -> None:
        monkeypatch.setattr(
            "amp_migrate.dependencies.torch_floor.installed_torch", lambda: installed
        )
        (folder / "requirements.txt").write_text(declared)
        (folder / "train.py").write_text(APEX_PROGRAM)

        done = amp_migrate("train.py")

        assert f"{spelling}.autocast(" in (folder / "train.py").read_text()
        assert hint in done.stderr

    @pytest.mark.parametrize(
        ("name", "text", "spelling"),
        [
            (
                "docker/Dockerfile",
                "FROM pytorch/pytorch:1.8.1-cuda11.1-cudnn8-devel\n",
                "torch.cuda.amp",
            ),
            (
                "docker/Dockerfile",
                "FROM pytorch/pytorch:2.5.0-cuda12.4-cudnn9-devel\n",
                "torch.amp",
            ),
            ("vocoder/requirements.txt", "torch==1.10\n", "torch.cuda.amp"),
            ("vocoder/requirements.txt", "torch\n", "torch.amp"),
            ("venv/requirements.txt", "torch==1.10\n", "torch.amp"),
        ],
    )
    def test_what_is_installed_tells_nothing_where_some_file_holds_an_older_torch(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, spelling: str
    ) -> None:
        monkeypatch.setattr(
            "amp_migrate.dependencies.torch_floor.installed_torch", lambda: "2.13.0"
        )
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
        (folder / "train.py").write_text(APEX_PROGRAM)

        amp_migrate(".")

        assert f"{spelling}.autocast(" in (folder / "train.py").read_text()
