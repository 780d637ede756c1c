"""What is said of products that O2 left in fp32 and O1 did not, where a run chooses the level."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_PROGRAM = """import argparse
import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--level", {option})
args = parser.parse_args()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level={level})
for _ in range(3):
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    out = model(x)
    loss = F.mse_loss(out, y) + torch.mm({factor}, y.t()).mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""


def _notes(option: str, level: str, factor: str = "out.float()") -> list[tuple[str, str | None]]:
    text = _PROGRAM.format(option=option, level=level, factor=factor)
    result = migrate([Source.from_bytes("train.py", text.encode())], Settings())
    assert result.outcomes[0].after is not None
    return [(f.message, f.advice) for f in result.plan.findings() if f.code == "AMP123"]


@pytest.mark.parametrize(
    ("option", "level", "levels", "enabled"),
    [
        ("default='O1'", "args.level", "`args.level` is O2 or O3", 'args.level == "O1"'),
        ("choices=['O1', 'O2']", "args.level", "`args.level` is O2", 'args.level == "O1"'),
        ("type=int", "'O2' if args.level else 'O0'", "`opt_level` is O2", "False"),
    ],
)
def test_one_note_says_at_which_levels(option: str, level: str, levels: str, enabled: str) -> None:
    ((message, advice),) = _notes(option, level)

    assert f"where {levels}, Apex left this in fp32" in message
    assert advice is not None
    assert f"enabled={enabled})" in advice


@pytest.mark.parametrize(
    ("option", "level", "factor"),
    [
        ("choices=['O0', 'O1']", "args.level", "out.float()"),
        ("default='O2'", "'O1'", "out.float()"),
        ("default='O1'", "args.level", "x"),
    ],
)
def test_nothing_is_said_where_no_level_differs(option: str, level: str, factor: str) -> None:
    assert _notes(option, level, factor) == []
