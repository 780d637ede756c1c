"""`verify --enable` holds a training with AMP against the one in FP32 that it was made of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from equivalence.forked import forked_launches  # noqa: F401

from amp_migrate.equivalence.check import check
from amp_migrate.equivalence.comparison import gains
from amp_migrate.equivalence.comparison.verdict import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.result import Result

pytestmark = pytest.mark.usefixtures("forked_launches")
CASES = Path(__file__).resolve().parents[2] / "fixtures" / "enable"
COMMAND = (sys.executable, "train.py")
PLAIN = """\
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
batches = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(8)]
for inputs, labels in batches:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(inputs), labels) * 1.0
    loss.backward()
    optimizer.step()
"""
HEADER = "with torch.cuda.amp.autocast():"
AMP = (
    PLAIN.replace("for inputs", "scaler = torch.cuda.amp.GradScaler()\nfor inputs")
    .replace("    loss = ", f"    {HEADER}\n        loss = ")
    .replace("loss.backward()", "scaler.scale(loss).backward()")
    .replace("optimizer.step()", "scaler.step(optimizer)\n    scaler.update()")
)
_HEAD, _LOOP = AMP.split("for inputs")
FROZEN = f"{_HEAD}{HEADER}\n" + "\n".join(
    f"    {line}" for line in f"for inputs{_LOOP}".split("\n")
)


def _verified(folder: Path, before: str, after: str | None = None, **asked: Any) -> Result:
    sides: dict[str, Path] = {}
    for name, text in {"before": before, "after": after}.items():
        if text is not None:
            sides[name] = folder / name
            sides[name].mkdir()
            (sides[name] / "train.py").write_text(text)
    options = {"enables": True, "inject": (), "steps": 8, **asked}
    if after is None:
        return check(Options(COMMAND, sides["before"], **options))
    return check(Options(COMMAND, sides["before"], **sides, **options))


def test_enabled_training_is_what_casts_make_of_it(tmp_path: Path) -> None:
    result = _verified(tmp_path, (CASES / "no_sync" / "before.py").read_text(), steps=4)
    assert result.verdict.word == EQUIVALENT, result.verdict
    assert result.logic is not None and result.logic.comparison.exact
    assert (result.before_label, result.after_label) == ("FP32", "native AMP")
    assert result.changed == ("train.py",)
    loss = result.errors[0]
    assert (loss.name, loss.alarm, loss.before == loss.after) == ("loss", None, True)
    assert 0 < max(error for error in loss.after if error is not None) < 1e-3
    assert (gains.NO_GPU in result.notes, result.timing) == (True, ())


@pytest.mark.parametrize(("more", "word"), [("1e-5", EQUIVALENT), ("0.02", DIFFERENT)])
def test_only_what_16_bits_explain_passes(tmp_path: Path, more: str, word: str) -> None:
    """Nothing of this is seen in FP32: outputs that grow by a share of themselves where they are cast."""
    grown = f"(out := net(inputs)) * (1 + {more} * (out.dtype != torch.float32))"
    result = _verified(tmp_path, PLAIN, AMP.replace("net(inputs)", grown))
    assert result.logic is not None and result.logic.comparison.exact
    assert result.verdict.word == word, result.verdict


def test_weights_that_stay_cast_are_seen(tmp_path: Path) -> None:
    """One block around all iterations keeps its first cast of the weights; in FP32 nothing of it is seen."""
    result = _verified(tmp_path, PLAIN, FROZEN)
    assert result.logic is not None and result.logic.comparison.exact
    assert result.verdict.word == DIFFERENT
    assert "further from FP32 than float16 explains" in result.verdict.reason


def test_smaller_scale_stands_in_for_one_that_is_looked_for(tmp_path: Path) -> None:
    """A loss so large that the first steps are skipped is compared from where none is."""
    steep = [
        text.replace("* 1.0", "* 3000.0").replace("lr=0.2", "lr=1e-4") for text in (PLAIN, AMP)
    ]
    result = _verified(tmp_path, *steep)
    assert result.verdict.word == EQUIVALENT, result.verdict
    assert any("while it looked for its scale" in note for note in result.notes)


def test_envelope_lies_around_casts_and_the_mean_loss_around_fp32(tmp_path: Path) -> None:
    result = _verified(tmp_path, PLAIN, AMP, runs=2, margin=0.05)
    assert result.verdict.word == EQUIVALENT, result.verdict
    assert [band.alarm for band in result.bands] == [None, None, None]
    assert result.equivalence is not None and abs(result.equivalence.difference) < 0.01


def test_amp_that_is_off_proves_nothing(tmp_path: Path) -> None:
    off = AMP.replace("autocast()", "autocast(enabled=False)")
    result = _verified(tmp_path, PLAIN, off.replace("Scaler()", "Scaler(enabled=False)"))
    assert (result.verdict.word, "is AMP off" in result.verdict.reason) == (INCONCLUSIVE, True)


def test_bfloat16_is_held_to_bfloat16(tmp_path: Path) -> None:
    result = _verified(tmp_path, PLAIN, codemod=("--dtype", "bfloat16"))
    assert result.verdict.word == EQUIVALENT, result.verdict
    assert "bfloat16 everywhere" in result.held_to
    assert result.after_label == "autocast without a GradScaler"


def test_what_a_cpu_cannot_run_is_no_difference(tmp_path: Path) -> None:
    refused = "class Net(nn.Linear):\n    def forward(self, x):\n        out = super().forward(x)\n"
    refused += "        if out.dtype != torch.float32:\n            raise RuntimeError('no kernel')\n        return out\n"
    program = PLAIN.replace("torch.manual_seed", refused + "torch.manual_seed", 1)
    result = _verified(tmp_path, program.replace("nn.Linear(16", "Net(16"))
    assert (result.verdict.word, "no kernel" in result.verdict.reason) == (INCONCLUSIVE, True)
