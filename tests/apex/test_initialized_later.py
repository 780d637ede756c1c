"""A network that Apex is given behind a training changed the loss scale of that: a note says so."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_PROGRAM = """import torch
import torch.nn.functional as F
from apex import amp


def train(student, teacher, batches):
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    {first}
    {second}
    for x, y in batches:
        with torch.no_grad():
            soft = teacher(x)
        loss = F.mse_loss(student(x), y) + F.mse_loss(student(x), soft)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_STUDENT = 'student, optimizer = amp.initialize(student, optimizer, opt_level="O1")'
_STATIC = (
    'student, optimizer = amp.initialize(student, optimizer, opt_level="O1", loss_scale=128.0)'
)
_PLAIN = 'teacher = amp.initialize(teacher, opt_level="O0")'
_CAST = 'teacher = amp.initialize(teacher, opt_level="O1")'
_SCALED = 'teacher = amp.initialize(teacher, opt_level="O1", loss_scale=128.0)'


def _told(first: str, second: str) -> list[str]:
    text = _PROGRAM.format(first=first, second=second)
    result = migrate([Source.from_bytes("main.py", text.encode())], Settings())
    assert result.outcomes[0].after is not None
    said = (f.message for f in result.plan.findings() if f.code == "AMP102")
    return [message for message in said if "may initialize later" in message]


@pytest.mark.parametrize(
    ("first", "second"),
    [(_STUDENT, _PLAIN), (_STATIC, _CAST)],
    ids=["none", "a dynamic one"],
)
def test_another_loss_scale_behind_a_training_is_told(first: str, second: str) -> None:
    """Apex went on with that of the last initialize."""
    (said,) = _told(first, second)
    assert said.startswith("main.py:9 ")


@pytest.mark.parametrize(
    ("first", "second"),
    [(_PLAIN, _STUDENT), (_STUDENT, _CAST), (_STATIC, _SCALED)],
    ids=["in front", "both dynamic", "both of one number"],
)
def test_nothing_is_told_where_the_loss_scale_stays(first: str, second: str) -> None:
    """It is the training's own that came last, or the other is like it."""
    assert _told(first, second) == []
