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


_DERIVED = """import argparse
import torch
import torch.nn.functional as F
from apex import amp
{imports}

class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.dense(x)


class Tagging({base}):
    def __init__(self, config):
        super().__init__(config)
        self.scores = Head()

    def forward(self, x, y):
        return F.mse_loss(self.scores(x), y)


parser = argparse.ArgumentParser()
parser.add_argument("--level", default="O1")
args = parser.parse_args()
kinds = {{"tagging": Tagging}}
model = kinds[input()].from_pretrained("a")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level=args.level)
for _ in range(3):
    loss = model(torch.randn(4, 4), torch.randn(4, 4))
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
with torch.no_grad():
    print(Tagging.from_pretrained("b")(torch.randn(4, 4), torch.randn(4, 4)))
"""


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("", "torch.nn.Module"),
        ("from transformers import BertForTokenClassification", "BertForTokenClassification"),
        ("from timm.models.vision_transformer import VisionTransformer", "VisionTransformer"),
        ("", "torch.nn.Sequential"),
    ],
)
def test_parts_of_a_network_that_is_derived_from_one_of_a_library_are_its_parts(
    imports: str, base: str
) -> None:
    """Apex was given the whole network, which a base out of sight makes it as much as torch does."""
    text = _DERIVED.format(imports=imports, base=base)
    result = migrate([Source.from_bytes("train.py", text.encode())], Settings())
    assert result.outcomes[0].after is not None
    assert not [f for f in result.plan.findings() if f.code == "AMP123"]
