"""A closure in the block of `scale_loss` runs the scaled loss backward; one that a step is given runs before it."""

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
_REFINED_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

net = torch.nn.Linear(4, 2)
first = torch.optim.Adam(net.parameters(), lr=0.1)
second = torch.optim.LBFGS(net.parameters(), lr=0.1)
net, first = amp.initialize(net, first, opt_level="O1")
x, y = torch.randn(3, 4), torch.randn(3, 2)


def measured():
    second.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss


def refine(turns):
    for _ in range(turns):
        second.step(measured)


for _ in range(4):
    first.zero_grad()
    loss = F.mse_loss(net(x), y)
    with amp.scale_loss(loss, first) as scaled_loss:
        scaled_loss.backward()
    first.step()
with amp.disable_casts():
    refine(2)
"""
_REFINED_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F

net = torch.nn.Linear(4, 2)
first = torch.optim.Adam(net.parameters(), lr=0.1)
second = torch.optim.LBFGS(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
x, y = torch.randn(3, 4), torch.randn(3, 2)


def measured():
    second.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss


def refine(turns):
    for _ in range(turns):
        second.step(measured)


for _ in range(4):
    first.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(first)
    scaler.update()
refine(2)
"""


def _refined(name: str, step: str) -> Training:
    """Return a training in which a step is given a closure that clears first."""
    given = "second.step(measured)"
    return Training(
        name,
        files(_REFINED_BEFORE.replace(given, step)),
        files(_REFINED_AFTER.replace(given, step)),
        {
            "cast": (
                (
                    "    second.zero_grad()\n    loss = F.mse_loss(net(x), y)",
                    "    second.zero_grad()\n    with torch.cuda.amp.autocast():\n        loss = F.mse_loss(net(x), y)",
                ),
            ),
            "not cleared": (("    second.zero_grad()\n", ""),),
            "scaled": (("    loss.backward()", "    scaler.scale(loss).backward()"),),
        },
    )


IN_CLOSURES = (
    _refined("a closure that clears before the step it is given to", "second.step(measured)"),
    _refined("the same by its keyword", "second.step(closure=measured)"),
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
