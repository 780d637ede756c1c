"""Optimizers that step in methods of their own, of which a GradScaler knows nothing."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_SHARPNESS = """import torch
from apex import amp

class Sharpness(torch.optim.Optimizer):
    def __init__(self, params, base, **settings):
        super().__init__(params, settings)
        self.base = base(self.param_groups, **settings)

    def ascend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad)

    def descend(self):
        self.base.step()

def train(model, loader):
    opt = Sharpness(model.parameters(), torch.optim.SGD, lr=0.1)
    model, opt = amp.initialize(model, opt)
    for x, y in loader:
        for move in (0, 1):
            loss = torch.nn.functional.mse_loss(model(x), y)
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
            if move:
                opt.descend()
            else:
                opt.ascend()
            opt.zero_grad()
"""
_LOOKAHEAD = """import torch
from apex import amp

class Slow(torch.optim.SGD):
    def advance(self, times):
        self.count = times
        self._advance()

    def _advance(self):
        super().step()

class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = Slow(net.parameters(), lr=0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt)

    def turn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        with amp.scale_loss(loss, self.opt) as scaled:
            scaled.backward()
        self.opt.advance(3)

trainer = Trainer(torch.nn.Linear(2, 2))
trainer.turn(torch.ones(1, 2), torch.ones(1, 2))
"""

_BY_A_HELPER = """import sys

import torch
from apex import amp

class Twice(torch.optim.Optimizer):
    def __init__(self, params, inner):
        super().__init__(params, {})
        self.inner = inner

    def forth(self):
        self.inner.step()

class Learner:
    def __init__(self, net, half):
        self.net, self.half = net, half
        self.opt = Twice(net.parameters(), torch.optim.SGD(net.parameters(), lr=0.1))
        if half:
            self.net, self.opt = amp.initialize(self.net, self.opt)

    def backward(self, loss):
        if not self.half:
            loss.backward()
            return
        with amp.scale_loss(loss, self.opt) as scaled:
            scaled.backward()

    def turn(self, x, y):
        self.opt.zero_grad()
        self.backward(torch.nn.functional.mse_loss(self.net(x), y))
        self.opt.forth()

learner = Learner(torch.nn.Linear(2, 2), "half" in sys.argv)
learner.turn(torch.ones(1, 2), torch.ones(1, 2))
"""


def _left(text: str) -> list[str]:
    result = migrate([Source.from_bytes("train.py", text.encode())], Settings())
    return [f.message for f in result.plan.findings() if f.code == "AMP905"]


@pytest.mark.parametrize(
    ("program", "call"),
    [
        (_SHARPNESS, "opt.descend()"),
        (_LOOKAHEAD, "self.opt.advance()"),
        (_BY_A_HELPER, "self.opt.forth()"),
    ],
    ids=["sharpness", "lookahead", "by a helper"],
)
def test_a_step_by_another_name_is_named(program: str, call: str) -> None:
    assert any(f"`{call}` steps" in message for message in _left(program)), _left(program)


def test_what_steps_out_of_sight_is_not_called_a_step() -> None:
    hidden = _SHARPNESS.replace("        self.base.step()\n", "        pass\n")
    assert any("nothing in the files given" in message for message in _left(hidden))
