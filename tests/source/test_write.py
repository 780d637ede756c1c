"""Rewriting in place: whole units, or nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from shell_support import APEX_PROGRAM, NATIVE_PROGRAM, FakeEngine, Put, amp_migrate


class TestWrite:
    def test_program_is_rewritten_in_place(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)

        done = amp_migrate("train.py")

        assert (folder / "train.py").read_text() == NATIVE_PROGRAM
        assert done.stdout == ""
        assert "found 3 uses of Apex: 3 migrated, 0 fixed, 0 left (in 1 file)\n" in done.stderr
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

    def test_native_code_beside_apex_gets_its_remarks(self, folder: Path) -> None:
        (folder / "train.py").write_text(APEX_PROGRAM)
        (folder / "native.py").write_text(
            "import torch\n\n\ndef train(model, optimizer, loader):\n"
            "    scaler = torch.cuda.amp.GradScaler()\n    for x in loader:\n"
            "        with torch.cuda.amp.autocast():\n            loss = model(x).sum()\n"
            "        scaler.scale(loss).backward()\n"
            "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
            "        scaler.step(optimizer)\n        scaler.update()\n"
        )

        assert "native.py:10:9 AMP402 note: " in amp_migrate(".").stderr

    def test_native_code_alone_is_respelled_on_request(self, folder: Path) -> None:
        (folder / "native.py").write_text(NATIVE_PROGRAM)

        amp_migrate("native.py", "--api", "torch.amp")

        assert 'torch.amp.GradScaler("cuda")' in (folder / "native.py").read_text()
        assert "torch.cuda.amp" not in (folder / "native.py").read_text()
