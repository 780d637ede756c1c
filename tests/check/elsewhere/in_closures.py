"""A closure in the block of `scale_loss` runs the scaled loss backward."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def descend(optimizer, loss, other):
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:

        def handle():
            scaled_loss.backward()

        handle()
    optimizer.step()


net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
for _ in range(4):
    loss = F.mse_loss(net(torch.randn(3, 4)), torch.randn(3, 2))
    descend(optimizer, loss, loss * 2)
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def descend(optimizer, loss, other, scaler):
    optimizer.zero_grad()

    def handle():
        scaler.scale(loss).backward()

    handle()
    scaler.step(optimizer)
    scaler.update()


net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for _ in range(4):
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(torch.randn(3, 4)), torch.randn(3, 2))
    descend(optimizer, loss, loss * 2, scaler)
"""
IN_CLOSURES = (
    Training(
        "a closure that runs the scaled loss of a block backward",
        files(_BEFORE),
        files(_AFTER),
        {
            "another loss": (("scaler.scale(loss)", "scaler.scale(other)"),),
            "a plain loss": (("scaler.scale(loss)", "loss"),),
            "never run": (("    handle()\n", ""),),
        },
    ),
)
