"""Optimizers that come from out of sight, beside one that a GradScaler steps: what steps and clears is one of them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_HELD_BEFORE = """\
# file: meta.py
import torch
import torch.nn.functional as F
from apex import amp

class Meta:
    def __init__(self, net, outer):
        self.net = net
        self.outer = outer
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")

    def step(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.optimizer.step()
        return loss.item()

    def outer_step(self, penalty):
        self.outer.zero_grad()
        penalty.backward()
        self.outer.step()
"""
_HELD_AFTER = """\
# file: meta.py
import torch
import torch.nn.functional as F

class Meta:
    def __init__(self, net, outer):
        self.net = net
        self.outer = outer
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def step(self, x, y):
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(self.net(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()

    def outer_step(self, penalty):
        self.outer.zero_grad()
        penalty.backward()
        self.outer.step()
"""
_SCALED = "it steps on gradients that are still scaled"
BROUGHT_OPTIMIZERS = (
    Training(
        "an optimizer that an object is given",
        files(_HELD_BEFORE),
        files(_HELD_AFTER),
        {_SCALED: (("penalty.backward()", "self.scaler.scale(penalty).backward()"),)},
    ),
)
