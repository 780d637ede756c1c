"""A function says whether AMP is on, so nothing is known of what it says; the GradScaler is made where Apex was initialized."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

OPTIONS = {"amp": True, "quick": False}


def use_amp():
    return OPTIONS["amp"]


def quick():
    return OPTIONS["quick"]


def build(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if use_amp():
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    return net, optimizer


def train(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    if use_amp():
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()


if __name__ == "__main__":
    net, optimizer = build(torch.nn.Linear(4, 2))
    for _ in range(9):
        train(net, optimizer, torch.randn(3, 4), torch.randn(3, 2))
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F

scaler = torch.cuda.amp.GradScaler(enabled=False)
OPTIONS = {"amp": True, "quick": False}


def use_amp():
    return OPTIONS["amp"]


def quick():
    return OPTIONS["quick"]


def build(net):
    global scaler
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if use_amp():
        scaler = torch.cuda.amp.GradScaler()
    return net, optimizer


def train(net, optimizer, x, y):
    optimizer.zero_grad()
    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


if __name__ == "__main__":
    net, optimizer = build(torch.nn.Linear(4, 2))
    for _ in range(9):
        train(net, optimizer, torch.randn(3, 4), torch.randn(3, 2))
"""
_MADE = "    if use_amp():\n        scaler = torch.cuda.amp.GradScaler()\n"
ASKED_BY_CALL = Training(
    "a flag that a function gives",
    files(_BEFORE),
    files(_AFTER),
    {
        "made in any case": ((_MADE, "    scaler = torch.cuda.amp.GradScaler()\n"),),
        "made where it is off": ((_MADE, _MADE.replace("use_amp()", "not use_amp()")),),
        "made by what another function gives": ((_MADE, _MADE.replace("use_amp()", "quick()")),),
        "made in the other arm": (
            (_MADE, "    if use_amp():\n        pass\n    else:\n        scaler = torch.cuda.amp.GradScaler()\n"),
        ),
        "made on at the top": (("GradScaler(enabled=False)", "GradScaler()"),),
    },
)  # fmt: skip
