"""What a flag is called decides nothing: the same program under other names gets the same edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate import migrate_project, migrate_source

_HEAD = """\
import torch
from apex import amp


def train(model, loader, FLAG):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = model(x, y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
"""
_STEPS = {
    "skips and clears": """\
        if FLAG:
            optimizer.zero_grad()
            continue
        optimizer.step()
        optimizer.zero_grad()
""",
    "steps at times, clears always": """\
        if FLAG:
            optimizer.step()
        optimizer.zero_grad()
""",
    "steps at times, clears then": """\
        if FLAG:
            optimizer.step()
            optimizer.zero_grad()
""",
    "does not step at times, clears where it does not": """\
        if not FLAG:
            optimizer.step()
        if FLAG:
            for p in model.parameters():
                p.grad = None
        else:
            optimizer.zero_grad()
""",
}
_NAMES = ("flag", "dry_run", "skip_update", "is_last_micro_batch", "sync", "update_now", "boundary")


def _migrated(text: str, name: str) -> tuple[str, list[tuple[str, str, str]]]:
    result = migrate_source(text.replace("FLAG", name))
    said = [(f.code, f.status.name, f.message.replace(name, "FLAG")) for f in result.findings]
    return result.text.replace(name, "FLAG"), said


@pytest.mark.parametrize("steps", _STEPS.values(), ids=_STEPS)
@pytest.mark.parametrize("name", _NAMES[1:])
def test_name_of_a_flag_around_a_step(steps: str, name: str) -> None:
    """Texts and findings are those of a flag called `flag`."""
    assert _migrated(_HEAD + steps, name) == _migrated(_HEAD + steps, _NAMES[0])


def test_gradients_that_stay_are_accumulated() -> None:
    """A clip moves with a finding where gradients outlive the iteration, silently where they are cleared."""
    kept = _migrated(_HEAD + _STEPS["steps at times, clears then"], "flag")[1]
    cleared = _migrated(_HEAD + _STEPS["steps at times, clears always"], "flag")[1]
    assert ("AMP208", "FIXED") in {(code, status) for code, status, _ in kept}
    assert "FIXED" not in {status for _, status, _ in cleared}


_PROGRAM = """\
import torch
from apex import amp
from settings import FLAG


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if FLAG:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        optimizer.zero_grad()
        loss = model(x, y)
        if FLAG:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("name", ["use_apex", "has_apex", "is_apex_available"])
@pytest.mark.parametrize("value", ["False", 'os.environ.get("FP16") == "1"'])
def test_name_of_a_flag_of_another_file(tmp_path: Path, value: str, name: str) -> None:
    """A switch of the project that speaks of Apex is a switch, whatever an import of that name says elsewhere."""
    (tmp_path / "settings.py").write_text(f"import os\n\n{name} = {value}\n")
    (tmp_path / "train.py").write_text(_PROGRAM.replace("FLAG", name))
    text = migrate_project(tmp_path).changes[0].text
    assert f"GradScaler(enabled={name})" in text.replace('"cuda", ', "")
