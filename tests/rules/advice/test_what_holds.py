"""What findings say holds at the levels and in the programs that there are."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.plan.model import Finding
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

CLIPPED = """\
import sys
import torch
from apex import amp

model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="{level}", loss_scale={scale})
for batch in range(10):
    loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_({clipped}, 1.0)
    optimizer.step()
"""
HANDLE = """\
import sys
import torch
from apex import amp
from halves import FP16_Optimizer


def train(model, loader):
    handle = amp.init()
    optimizer = FP16_Optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        {backward}
        if handle:
            handle._clear_cache()
        optimizer.step()
        optimizer.zero_grad()
"""


def findings(code: str, text: str) -> list[Finding]:
    """Return the findings of one rule in one file."""
    sources = [Source.from_bytes("train.py", text.encode())]
    found = migrate(sources, Settings(api="torch.cuda.amp")).plan.findings()
    return [item for item in found if item.code == code]


@pytest.mark.parametrize(
    ("level", "clipped", "said"),
    [
        ("O1", "amp.master_params(optimizer)", "clipped scaled gradients"),
        ("O2", "amp.master_params(optimizer)", "clipped nothing"),
        ("O2", "model.parameters()", "clipped scaled gradients"),
    ],
)
def test_master_weights_have_no_gradients_inside_the_block(
    level: str, clipped: str, said: str
) -> None:
    (found,) = findings("AMP207", CLIPPED.format(level=level, scale=None, clipped=clipped))

    assert said in found.message


def test_a_level_that_is_never_chosen_scales_nothing_in_no_run() -> None:
    text = CLIPPED.format(level="O2", scale="float(sys.argv[1])", clipped="model.parameters()")
    messages = [item.message for item in findings("AMP102", text)]

    assert any("is chosen at run time" in message for message in messages)
    assert not any("at O0" in message for message in messages)


def test_an_optimizer_that_scales_itself_is_wrapped_in_no_handle() -> None:
    (wraps,) = findings("AMP909", HANDLE.format(backward="loss.backward()"))
    (itself,) = findings("AMP909", HANDLE.format(backward="optimizer.backward(loss)"))

    assert "wrap_optimizer" in wraps.advice
    assert "wrap_optimizer" not in itself.advice
    assert "`optimizer.backward(loss)` scales the loss itself" in itself.advice
