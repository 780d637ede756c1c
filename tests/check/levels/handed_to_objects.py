"""Networks that are handed to the methods of plain objects: each is cast where it is run at the levels at which Apex cast it."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """\
import sys
import torch
from torch import nn
from apex import amp

class Matching:
    def loss(self, model, x):
        return (model(x) - x).pow(2).mean()

def train(level):
    model = nn.Linear(6, 6)
    teacher = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level=level)
    matching = Matching()
    for step in range(24):
        x = torch.randn(4, 6)
        loss = matching.loss(model, x)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            print(matching.loss(teacher, x))

train(sys.argv[1])
"""
_AFTER = """\
import sys
import torch
from torch import nn

class Matching:
    def loss(self, model, x):
        return (model(x) - x).pow(2).mean()

def train(level):
    model = nn.Linear(6, 6)
    teacher = nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", enabled=level != "O0")
    matching = Matching()
    for step in range(24):
        x = torch.randn(4, 6)
        with torch.amp.autocast("cuda", enabled=scaler.is_enabled()):
            loss = matching.loss(model, x)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        with torch.no_grad(), torch.amp.autocast("cuda", enabled=level == "O1"):
            print(matching.loss(teacher, x))

train(sys.argv[1])
"""

HANDED_TO_OBJECTS = (
    Training(
        "a teacher and the trained network, handed to one object",
        {"train.py": _BEFORE},
        {"train.py": _AFTER},
        {
            "the teacher cast at every level": (
                (' enabled=level == "O1"', ' enabled=level != "O0"'),
            ),
            "the teacher never cast": (
                (', torch.amp.autocast("cuda", enabled=level == "O1")', ""),
            ),
            "the trained network never cast": (("enabled=scaler.is_enabled()", "enabled=False"),),
        },
    ),
)
