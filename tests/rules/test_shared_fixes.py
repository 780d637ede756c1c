"""Fixes in code that a program without AMP runs as well: the finding names that program."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

ENGINE = """import torch
from apex import amp


def train(model, optimizer, batches, fp16):
    for x in batches:
        loss = model(x).sum()
        if fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.zero_grad()
        optimizer.step()
"""
HEAD = """import torch
from engine import train


def main():
    model = torch.nn.Linear(3, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LAST = "\n\nmain()\n"
AMP = (
    HEAD.replace("import torch\n", "import torch\nfrom apex import amp\n")
    + '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n'
    + "    train(model, optimizer, torch.randn(5, 4, 3).cuda(), True)"
    + LAST
)
PLAIN = HEAD + "    train(model, optimizer, torch.randn(5, 4, 3).cuda(), False)" + LAST
IN_A_TABLE = (
    HEAD
    + '    {"train": train}["train"](model, optimizer, torch.randn(5, 4, 3).cuda(), False)'
    + LAST
)


@pytest.mark.parametrize(
    ("beside", "named"),
    [
        ({}, ""),
        ({"fp32.py": PLAIN}, "; so it does in fp32.py, which trains without AMP"),
        (
            {"fp32.py": PLAIN, "more.py": PLAIN},
            "; so it does in fp32.py and more.py, which train without AMP",
        ),
        ({"table.py": IN_A_TABLE}, "; so it does in table.py, which trains without AMP"),
        ({"other.py": AMP}, ""),
    ],
)
def test_program_without_amp_is_named(beside: dict[str, str], named: str) -> None:
    """A fix says which programs without AMP it changes."""
    files = {"engine.py": ENGINE, "train.py": AMP, **beside}
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    result = migrate(sources, Settings())
    (fixed,) = (f for f in result.plan.findings() if f.status is Status.FIXED)
    assert fixed.code == "AMP204"
    assert fixed.message.partition("it moves behind the step")[2] == named
