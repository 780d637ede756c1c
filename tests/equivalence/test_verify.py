"""The command from end to end: copies, migration, ladder, verdicts, exit codes and reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from amp_migrate.equivalence.cli import main
from equivalence.forked import forked_launches  # noqa: F401
from equivalence.programs import apex_program, native_program, replaced

pytestmark = pytest.mark.usefixtures("forked_launches")

FAST = ("--steps", "4", "--inject-overflow", "2", "--device", "cpu", "--no-timing")


ACCUMULATING = """
import torch, torch.nn as nn
from apex import amp
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
criterion = nn.CrossEntropyLoss()
accumulation_steps = 4
for i in range(40):
    inputs, labels = torch.randn(8, 16).cuda(), torch.randint(0, 4, (8,)).cuda()
    outputs = model(inputs)
    loss = criterion(outputs, labels) / accumulation_steps
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
"""


OLDER = """
import torch, torch.nn as nn
from apex.fp16_utils import FP16_Optimizer, network_to_half
torch.manual_seed(0)
model = network_to_half(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).cuda())
optimizer = FP16_Optimizer(torch.optim.SGD(model.parameters(), lr=0.1), dynamic_loss_scale=True)
criterion = nn.CrossEntropyLoss()
for i in range(8):
    inputs, labels = torch.randn(8, 16).cuda(), torch.randint(0, 4, (8,)).cuda()
    loss = criterion(model(inputs).float(), labels)
    optimizer.zero_grad()
    optimizer.backward(loss)
    optimizer.clip_master_grads(0.5)
    optimizer.step()
"""


def tree(folder: Path, source: str) -> Path:
    """Write train.py into `folder`."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(source, encoding="utf-8")
    return folder


def verify(
    out: Path, *options: str, command: tuple[str, ...] = ("python", "train.py")
) -> tuple[int, dict]:
    """Run the command and return its exit code and JSON report."""
    code = main([*FAST, "--json", str(out / "report.json"), *options, "--", *command])
    return code, json.loads((out / "report.json").read_text(encoding="utf-8"))


def test_migrates_a_copy_and_finds_it_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The main job: the current folder, migrated aside, compared, reported in every form."""
    source = replaced(ACCUMULATING, "    optimizer.zero_grad()\n", "")
    source = replaced(
        source, "optimizer.step()\n", "optimizer.step()\n        optimizer.zero_grad()\n"
    )
    project = tree(tmp_path / "project", source)
    monkeypatch.chdir(project)
    reports = tmp_path / "reports"
    code = main([*FAST, "--timing", "--out", str(reports), "--", "python", "train.py"])
    report = json.loads((reports / "verify.json").read_text(encoding="utf-8"))
    assert (code, report["verdict"]["word"], report["changed_files"]) == (0, "EXACT", ["train.py"])
    assert report["before"].startswith("reference Apex")
    assert report["coverage"]["skipped"] == 1
    assert [row["name"] for row in report["timing"]] == ["FP32", "Apex", "native"]
    assert (project / "train.py").read_text(encoding="utf-8") == source
    page = (reports / "verify.html").read_text(encoding="utf-8")
    assert "EXACT" in page and "<script" not in page and "http" not in page
    assert (reports / "verify.png").read_bytes().startswith(b"\x89PNG")
    captured = capsys.readouterr()
    assert "running your code: python train.py" in captured.err
    assert captured.out.startswith("EXACT\n  before and after agree") and "\x1b" not in captured.out


def test_an_optimizer_of_fp16_utils_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its losses are unscaled, its scale and skipped steps are seen, and it clips nothing behind an overflow."""
    monkeypatch.chdir(tree(tmp_path / "project", OLDER))
    code, report = verify(tmp_path, "--no-casts")
    assert (code, report["verdict"]["word"]) == (0, "EXACT")
    assert report["coverage"]["skipped"] == 1


def test_casts_that_skip_every_step_are_compared_from_a_smaller_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs with casts whose every step overflows are equal, and say nothing of updates, so both run once more."""
    one = replaced(ACCUMULATING, "accumulation_steps = 4", "accumulation_steps = 1")
    slow = replaced(one, "lr=0.1", "lr=1e-9")
    source = replaced(slow, "torch.randn(8, 16).cuda()", "torch.randn(8, 16).cuda() * 2000")
    monkeypatch.chdir(tree(tmp_path / "wide", source))
    _, wide = verify(tmp_path)
    monkeypatch.chdir(tree(tmp_path / "small", one))
    _, small = verify(tmp_path)

    assert any("skip every step on the way down" in note for note in wide["notes"])
    assert not any("every step" in note for note in small["notes"])
    steps = wide["numeric"]["before"]["ranks"][0]["steps"]
    assert steps[0]["scales"] == [2.0]
    assert not any(step["attempts"][0]["skipped"] for step in steps)
    assert wide["verdict"]["word"] == "EXACT"


def test_wrong_migration_by_hand_is_different(tmp_path: Path) -> None:
    """A missing unscale_ is named, with its values, and the exit code is 1."""
    before = tree(tmp_path / "a", apex_program("mlp"))
    wrong = replaced(native_program("mlp"), "    scaler.unscale_(opt_head)\n", "")
    after = tree(tmp_path / "b", wrong)
    code, report = verify(tmp_path, "--before", str(before), "--after", str(after))
    assert (code, report["verdict"]["word"]) == (1, "DIFFERENT")
    assert "unscale_ is missing" in report["verdict"]["reason"]
    assert (report["first_difference"]["quantity"], report["first_difference"]["step"]) == (
        "clip norm",
        1,
    )


def test_missing_autocast_is_different_by_census(tmp_path: Path) -> None:
    """Casts off cannot see it; the census names the operators."""
    before = tree(tmp_path / "a", apex_program("mlp"))
    after = tree(
        tmp_path / "b", replaced(native_program("mlp"), "autocast()", "autocast(enabled=False)")
    )
    code, report = verify(tmp_path, "--before", str(before), "--after", str(after))
    assert code == 1
    assert "addmm (forward): 12 x float16 -> 12 x float32" in report["verdict"]["reason"]


def test_export_and_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before is recorded on one machine; the second has the migrated program only."""
    export = tmp_path / "before.json"
    monkeypatch.chdir(tree(tmp_path / "a", apex_program("mlp")))
    assert main([*FAST, "--export", str(export), "--", "python", "train.py"]) == 0
    monkeypatch.chdir(tree(tmp_path / "b", native_program("mlp")))
    code, report = verify(tmp_path, "--import", str(export))
    assert (code, report["verdict"]["word"]) == (0, "EXACT")
    assert report["before"].startswith("reference Apex")
    code, report = verify(tmp_path, "--import", str(export), "--seed", "1")
    assert (code, report["verdict"]["word"]) == (3, "CANNOT_RUN")
    assert "seed 0, now it is 1" in report["verdict"]["reason"]


def test_o2_is_anchored_to_fp32(tmp_path: Path) -> None:
    """O2 rounds differently from autocast, so the errors against fp32 decide."""
    o2 = replaced(apex_program("mlp"), 'opt_level="O1"', 'opt_level="O2"')
    before, after = tree(tmp_path / "a", o2), tree(tmp_path / "b", native_program("mlp"))
    code, report = verify(tmp_path, "--before", str(before), "--after", str(after))
    assert (code, report["verdict"]["word"], report["held_to"]) == (
        *(0, "EQUIVALENT"),
        "errors against one fp32 run",
    )
    assert 0 < report["verdict"]["delta"] < 1e-2
    assert [row["name"] for row in report["anchor"]] == ["loss", "gradient norm", "update norm"]


def test_envelope_decides_on_request(tmp_path: Path) -> None:
    """O2 against autocast: repeated runs give a band per step and an interval for the whole curve."""
    o2 = replaced(apex_program("mlp"), 'opt_level="O1"', 'opt_level="O2"')
    clipped = "clip_grad_norm_(amp.master_params(opt_body), 0.1)"
    before = tree(tmp_path / "a", replaced(o2, "clip_grad_norm_(params, 0.1)", clipped))
    clipped = "clip_grad_norm_(body.parameters(), 0.1)"
    source = replaced(native_program("mlp"), "clip_grad_norm_(params, 0.1)", clipped)
    after = tree(tmp_path / "b", source)
    code, report = verify(
        *(tmp_path, "--before", str(before), "--after", str(after)),
        *("--runs", "2", "--html", str(tmp_path / "report.html")),
    )
    assert (code, report["verdict"]["word"], report["held_to"]) == (
        *(0, "EQUIVALENT"),
        "envelope of 2 runs",
    )
    tested = report["equivalence"]
    assert -tested["margin"] < tested["low"] <= tested["high"] < tested["margin"]
    assert [row["alarm"] for row in report["envelope"]] == [None, None, None]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for name in ("loss", "gradient norm", "update norm", "loss scale"):
        assert f"<figcaption>{name}</figcaption>" in page
    assert page.count('class="band"') == 3 and "<dt>equivalence</dt>" in page


def test_static_loss_scale_is_not_overflowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apex never checks a static scale, so nothing is injected, and the report says so.

    The program ends by itself before the asked number of steps.
    """
    source = replaced(ACCUMULATING, "    optimizer.zero_grad()\n", "")
    source = replaced(
        source, "optimizer.step()\n", "optimizer.step()\n        optimizer.zero_grad()\n"
    )
    source = replaced(source, 'opt_level="O1"', 'opt_level="O1", loss_scale=128.0')
    source = replaced(source, "range(40)", "range(12)")
    monkeypatch.chdir(tree(tmp_path / "a", source))
    code, report = verify(tmp_path, "--no-casts")
    assert (code, report["verdict"]["word"], report["coverage"]["skipped"]) == (0, "EXACT", 0)
    assert any("loss_scale=128.0 is static" in note for note in report["notes"])
    assert "the program ends after 3 of 4 steps" in report["notes"]


@pytest.mark.parametrize(
    ("source", "word", "reason"),
    [
        ("import torch\nw = torch.randn(3, requires_grad=True)\nfor _ in range(5):\n"
         "    g, = torch.autograd.grad(w.pow(2).sum(), w)\n    w = (w - g).detach().requires_grad_()\n",
         "INCONCLUSIVE", "no optimizer step was recorded"),
        ("import torch\nclass Descent:\n    def step(self):\n        w.data -= w.grad\n"
         "w = torch.ones(3, requires_grad=True)\no = Descent()\nfor _ in range(5):\n"
         "    w.pow(2).sum().backward(); o.step()\n",
         "INCONCLUSIVE", "no optimizer step was recorded"),
        ("raise SystemExit('no data')\n", "CANNOT_RUN", "before: no data"),
        ("import random, torch\nrandom.seed()\nw = torch.nn.Linear(1, 1)\n"
         "o = torch.optim.SGD(w.parameters(), lr=.1)\n"
         "while True:\n    (w.weight * random.random()).sum().backward(); o.step()\n",
         "INCONCLUSIVE", "two runs of the same program differ in loss at step 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared(tmp_path: Path, source: str, word: str, reason: str) -> None:
    """Nothing recorded, nothing running and nothing reproducible are never a pass."""
    folder = tree(tmp_path / "a", source)
    code, report = verify(tmp_path, "--before", str(folder), "--after", str(folder))
    assert report["verdict"]["word"] == word and reason in report["verdict"]["reason"]
    assert code == {"INCONCLUSIVE": 2, "CANNOT_RUN": 3}[word]


def test_unchanged_copy_is_inconclusive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing a program with itself would prove nothing."""
    monkeypatch.chdir(tree(tmp_path / "a", native_program("mlp")))
    code, report = verify(tmp_path)
    assert (code, report["verdict"]["reason"]) == (2, "the codemod changes nothing here")


def test_migrated_files_must_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that never reaches the migrated code proves nothing about it."""
    project = tree(tmp_path / "a", ACCUMULATING)
    (project / "other.py").write_text(native_program("mlp"), encoding="utf-8")
    monkeypatch.chdir(project)
    code, report = verify(tmp_path, command=("python", "other.py"))
    assert code == 2
    assert "runs none of the migrated files (train.py)" in report["verdict"]["reason"]


def test_unrelated_apex_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPI's `apex` is another project; the reference is used and the report says so."""
    (tmp_path / "site" / "apex").mkdir(parents=True)
    (tmp_path / "site" / "apex" / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    before, after = (
        tree(tmp_path / "a", apex_program("mlp")),
        tree(tmp_path / "b", native_program("mlp")),
    )
    trees = ("--before", str(before), "--after", str(after))
    code, report = verify(tmp_path, *trees, "--no-casts")
    assert code == 0
    assert any("another project of that name" in note for note in report["notes"])
    code, report = verify(tmp_path, *trees, "--apex", "installed")
    assert (code, report["verdict"]["word"]) == (3, "CANNOT_RUN")


def test_fix_is_held_to_the_large_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix changes the training; it is checked by its promise, and the rest by bits."""
    monkeypatch.chdir(tree(tmp_path / "a", ACCUMULATING))
    code, report = verify(tmp_path)
    assert (code, report["verdict"]["word"], report["fixes"]) == (0, "EXACT", ["AMP201"])
    assert report["fix_check"]["agrees"] and report["fix_check"]["micro_batches"] == 4
    assert "before is the Apex program with AMP201 applied" in report["notes"]
