"""Optimizers taken out of a list that a function fills: a GradScaler steps each of them, and not the list."""

from __future__ import annotations

from check.trainings.planted import Training

_MAKING = """import torch


def optimizers(networks, adaptive):
    made = []
    for network in networks:
        if adaptive:
            made.append(torch.optim.Adam(network.parameters()))
        else:
            made.append(torch.optim.SGD(network.parameters(), lr=0.1))
    return made
"""
_BEFORE = """import sys

import torch
from apex import amp
from making import optimizers

encoder, decoder = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4)
both = optimizers([encoder, decoder], "--adaptive" in sys.argv)
first, last = optimizers([encoder, decoder], "--adaptive" in sys.argv)
[encoder, decoder], [first, last] = amp.initialize([encoder, decoder], [first, last], opt_level="O1")
for x in torch.randn(5, 3, 4):
    loss = torch.nn.functional.mse_loss(decoder(encoder(x)), x)
    first.zero_grad()
    last.zero_grad()
    with amp.scale_loss(loss, [first, last]) as scaled_loss:
        scaled_loss.backward()
    first.step()
    last.step()
"""
_AFTER = """import sys

import torch
from making import optimizers

encoder, decoder = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4)
both = optimizers([encoder, decoder], "--adaptive" in sys.argv)
first, last = optimizers([encoder, decoder], "--adaptive" in sys.argv)
scaler = torch.cuda.amp.GradScaler()
for x in torch.randn(5, 3, 4):
    with torch.cuda.amp.autocast():
        loss = torch.nn.functional.mse_loss(decoder(encoder(x)), x)
    first.zero_grad()
    last.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(first)
    scaler.step(last)
    scaler.update()
"""

ITEMS_OF_LISTS = (
    Training(
        "two optimizers out of a list that a function fills",
        {"making.py": _MAKING, "train.py": _BEFORE},
        {"making.py": _MAKING, "train.py": _AFTER},
        {
            "the list is stepped": (
                ("    scaler.step(first)\n    scaler.step(last)\n", "    scaler.step(both)\n"),
            ),
            "one is stepped twice": (("    scaler.step(last)\n", "    scaler.step(first)\n"),),
            "one is not stepped": (("    scaler.step(last)\n", ""),),
        },
        (("AMP105", "train.py", 15, 15, True),),
    ),
)
