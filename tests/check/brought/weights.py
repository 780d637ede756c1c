"""Weights that are written by hand inside an autocast block, which they were not."""

from __future__ import annotations

from check.trainings.planted import Training, files

_EMA_BEFORE = """
# file: ema.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, model, avg, mix, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for x, y in loader:
        with torch.no_grad():
            for p, q in zip(avg.parameters(), model.parameters()):
                p.data.add_(mix @ q)
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as s:
            s.backward()
        opt.step()
        with torch.no_grad():
            model.weight.copy_(model.weight / model.weight.norm())
        avg.mix = mix @ model.weight
"""

_EMA_AFTER = """
# file: ema.py
import torch
import torch.nn.functional as F


def train(args, model, avg, mix, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.no_grad():
            for p, q in zip(avg.parameters(), model.parameters()):
                p.data.add_(mix @ q)
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        with torch.no_grad():
            model.weight.copy_(model.weight / model.weight.norm())
        avg.mix = mix @ model.weight
"""

WEIGHTS = (
    Training(
        "averages and weights of norm one",
        files(_EMA_BEFORE),
        files(_EMA_AFTER),
        {
            "copy under cast": (
                (
                    "        with torch.no_grad():\n            model.weight",
                    "        with torch.no_grad(), torch.cuda.amp.autocast():\n            model.weight",
                ),
            ),
            "add in cast": (
                (
                    "        with torch.no_grad():\n            for",
                    "        with torch.no_grad(), torch.cuda.amp.autocast():\n            for",
                ),
            ),
            "add uncast": (
                (
                    "        with torch.no_grad():\n            for",
                    "        with torch.no_grad(), torch.cuda.amp.autocast(enabled=False):\n            for",
                ),
            ),
        },
    ),
)
