"""A wrong decision of the planner becomes a refusal with the path that shows why."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated.choices.features import draw
from generated.judging.mutants import MUTANTS, Mutant
from generated.written.program import Program, build

from amp_migrate.api import migrate_project
from amp_migrate.engine import migrate
from amp_migrate.outcome import Result
from amp_migrate.plan.model import Status
from amp_migrate.plan.planner import Planner
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

CODE = "AMP913"
PROGRAMS = 60
HARMLESS = "zero_grad on every micro-batch"  # without the fix the training is the old one


def _migrated(files: dict[str, bytes]) -> Result:
    sources = [Source.from_bytes(name, data) for name, data in files.items()]
    return migrate(sources, Settings(api="torch.cuda.amp"))


def _wanted(mutant: Mutant) -> list[Program]:
    drawn = [draw(seed) for seed in range(PROGRAMS)]
    fits = [f for f in drawn if all(f[name] in options for name, options in mutant.wanted.items())]
    return [build(f) for f in fits[:3]]


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name != HARMLESS], ids=lambda m: m.name)
def test_a_planted_fault_is_refused(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one rule spoilt, what it spoils is left byte for byte, and the finding names lines of the source."""
    programs = _wanted(mutant)
    sound = [_migrated(program.files) for program in programs]
    assert not any(CODE in {f.code for f in r.plan.findings()} for r in sound)
    monkeypatch.setattr(mutant.rule, "decide", mutant.decide())
    refused, missed = 0, 0
    for program, before in zip(programs, sound, strict=True):
        result = _migrated(program.files)
        found = [f for f in result.plan.findings() if f.code == CODE]
        if not found:  # the rule had nothing to spoil here
            missed += _texts(result) != _texts(before)
            continue
        refused += 1
        assert all(f.status is not Status.MIGRATED for f in found)
        assert any(" -> " in f.message or ":" in f.message for f in found)
        assert all(o.after is None for o in result.outcomes if o.path == found[0].path)
    assert refused >= len(programs) // 2
    assert missed <= 1  # an update between the steps of two networks that share a loss


def _texts(result: Result) -> list[str | None]:
    return [outcome.after for outcome in result.outcomes]


def test_a_loop_that_clips_above_its_backward_is_unscaled_or_refused() -> None:
    """The clip of the window before reads gradients that the loop has left scaled."""
    text = b"""
import torch
from apex import amp

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for i, (x, y) in enumerate(loader):
    if i:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
"""
    result = _migrated({"train.py": text})
    after = result.outcomes[0].after
    if after is None:
        causes = [f for f in result.plan.findings() if f.code == CODE]
        assert 10 in {f.span.line for f in causes}
        assert any("train.py:15 -> train.py:10" in f.message for f in causes)
    else:
        assert after.index("unscale_") < after.index("clip_grad_norm_")


def test_what_stays_refuted_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a planner goes on with what the check refuses, the file stays, and the run says why."""
    mutant = next(m for m in MUTANTS if m.name != HARMLESS)
    monkeypatch.setattr(mutant.rule, "decide", mutant.decide())
    planned = Planner.plan
    monkeypatch.setattr(Planner, "plan", lambda planner, refused: planned(planner, {}))
    (program,) = _wanted(mutant)[:1]
    for name, data in program.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    report = migrate_project([tmp_path])
    assert not report.changes
    assert any(problem.reason.startswith("stays as it was:") for problem in report.problems)
