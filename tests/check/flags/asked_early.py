"""GradScalers that what an autocast block runs makes: the block has asked for one before, which was off."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net):
        self.net = net
        self.ready = False

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")
        self.ready = True

    def compute(self, x, y):
        {inside}
        return F.mse_loss(self.net(x), y)

    def fit(self, loader):
        for x, y in loader:
            {outside}
            loss = self.compute(x, y)
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            self.opt.step()


Trainer(torch.nn.Linear(7, 3)).fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""
_AFTER = """import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net):
        self.net = net
        self.ready = False
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)

    def ensure(self):
        if self.ready:
            return
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.ready = True

    def compute(self, x, y):
        {inside}
        return F.mse_loss(self.net(x), y)

    def fit(self, loader):
        for x, y in loader:
            {outside}
            with torch.cuda.amp.autocast({asked}):
                loss = self.compute(x, y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()


Trainer(torch.nn.Linear(7, 3)).fit([(torch.randn(6, 7), torch.randn(6, 3))])
"""
_ASKS, _BLOCK = "enabled=self.scaler.is_enabled()", "torch.cuda.amp.autocast("


def _training(name: str, inside: str, outside: str, asked: str, fault: tuple[str, str]) -> Training:
    before = _BEFORE.format(inside=inside, outside=outside)
    after = _AFTER.format(inside=inside, outside=outside, asked=asked)
    return Training(name, {"train.py": before}, {"train.py": after}, {name: (fault,)})


ASKED_EARLY = [
    _training(
        "what a block runs makes the GradScaler that it asks",
        "self.ensure()",
        "pass",
        "",
        (_BLOCK, f"{_BLOCK}{_ASKS}"),
    ),
    _training(
        "a block makes the GradScaler that it asks",
        "pass",
        "self.ensure()",
        _ASKS,
        (
            f"            self.ensure()\n            with {_BLOCK}{_ASKS}):\n",
            f"            with {_BLOCK}{_ASKS}):\n                self.ensure()\n",
        ),
    ),
]
