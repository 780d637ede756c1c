"""Weights that constructors write under autocast: those of the object that is being made, and those of a network they are given."""

from __future__ import annotations

from check.trainings.planted import Training

_PARTS = """import torch
from torch import nn


class Cells(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, width))
        self.draw()

    def draw(self):
        for weight in self.parameters():
            weight.data.uniform_(-0.25, 0.25)

    def forward(self, x):
        return nn.functional.linear(x, self.weight)


class Damped(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        for weight in self.parameters():
            weight.data.mul_(0.5)

    def forward(self, x):
        return self.body(x)
"""
_BEFORE = """import torch
from apex import amp
from parts import Cells, Damped

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
for x in torch.randn(5, 3, 4):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
with torch.no_grad():
    seen = net(torch.ones(3, 4))
    cells = Cells(4)
    seen = cells(seen)
with torch.no_grad():
    first = net(torch.ones(3, 4))
    damped = Damped(net)
    second = damped(torch.ones(3, 4))
print(seen.max().item(), first.max().item(), second.max().item())
"""
_AFTER = """import torch
from parts import Cells, Damped

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x in torch.randn(5, 3, 4):
    with torch.cuda.amp.autocast():
        loss = net(x).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
with torch.no_grad(), torch.cuda.amp.autocast():
    seen = net(torch.ones(3, 4))
    cells = Cells(4)
    seen = cells(seen)
with torch.no_grad():
    with torch.cuda.amp.autocast():
        first = net(torch.ones(3, 4))
    damped = Damped(net)
    with torch.cuda.amp.autocast():
        second = damped(torch.ones(3, 4))
print(seen.max().item(), first.max().item(), second.max().item())
"""
_APART = """    with torch.cuda.amp.autocast():
        first = net(torch.ones(3, 4))
    damped = Damped(net)
    with torch.cuda.amp.autocast():
        second = damped(torch.ones(3, 4))
"""
_TOGETHER = """    with torch.cuda.amp.autocast():
        first = net(torch.ones(3, 4))
        damped = Damped(net)
        second = damped(torch.ones(3, 4))
"""

DRAWN_WEIGHTS = (
    Training(
        "a constructor draws weights under autocast, and another one damps those of a network",
        {"parts.py": _PARTS, "train.py": _BEFORE},
        {"parts.py": _PARTS, "train.py": _AFTER},
        {
            "those of the network are damped between its forwards in one block": (
                (_APART, _TOGETHER),
            ),
        },
    ),
)
"""Autocast has a copy of what ran: what is written then must be new."""
