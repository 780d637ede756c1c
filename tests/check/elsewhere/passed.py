"""Trainings with ways past the step on which gradients are cleared: a rule must say what an overflow in them does."""

from __future__ import annotations

from dataclasses import replace

from check.trainings.planted import Training

_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp


def train(model, optimizer, loader):
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
{steps}

def main(loader, epochs):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for epoch in range(epochs):
        train(model, optimizer, loader)
"""
_AFTER = """\
import torch
import torch.nn.functional as F


def train(model, optimizer, loader, scaler):
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
{steps}

def main(loader, epochs):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(epochs):
        train(model, optimizer, loader, scaler)
"""
_STEPS = {
    "a round that goes on": """\
        if not torch.isfinite(loss):
            continue
        optimizer.step()
""",
    "a test around the step": """\
        if torch.isfinite(loss):
            optimizer.step()
""",
    "an epoch that returns": """\
        if not torch.isfinite(loss):
            return
        optimizer.step()
""",
    "an exception that is caught": """\
        try:
            if not torch.isfinite(loss):
                raise ValueError
            optimizer.step()
        except ValueError:
            print("no step")
""",
    "a first few rounds": """\
        if len(loader) > 3:
            optimizer.step()
""",
}


_HOOKED = """\
import torch
import torch.nn.functional as F
from apex import amp


class Stepping:
    def __init__(self, optimizer, rounds):
        self.optimizer, self.rounds = optimizer, rounds

    def __call__(self, i, loss):
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        if (i + 1) % self.rounds == 0:
            self.optimizer.step()


def main(loader, epochs):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    stepping = Stepping(optimizer, 4)
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            stepping(i, loss)
"""
_HOOKED_AFTER = """\
import torch
import torch.nn.functional as F


class Stepping:
    def __init__(self, optimizer, rounds, scaler):
        self.optimizer, self.rounds = optimizer, rounds
        self.scaler = scaler

    def __call__(self, i, loss):
        self.scaler.scale(loss).backward()
        if (i + 1) % self.rounds == 0:
            self.scaler.step(self.optimizer)
            self.scaler.update()


def main(loader, epochs):
    model = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    stepping = Stepping(optimizer, 4, scaler)
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            stepping(i, loss)
"""


def _training(name: str, steps: str) -> Training:
    line = _BEFORE.splitlines().index("            scaled_loss.backward()") + 1
    text = "optimizer.step()\n"
    held = next(part for part in steps.splitlines() if part.endswith("optimizer.step()"))
    indent = held[: -len("optimizer.step()")]
    native = f"scaler.step(optimizer)\n{indent}scaler.update()\n"
    return Training(
        f"gradients are cleared past the step behind {name}",
        {"train.py": _BEFORE.format(steps=steps)},
        {"train.py": _AFTER.format(steps=steps.replace(text, native))},
        {},
        (("AMP106", "train.py", line, line, True),),
    )


_EVERY = Training(
    "gradients are cleared before every call of what steps after several",
    {"train.py": _HOOKED},
    {"train.py": _HOOKED_AFTER},
    {},
    (("AMP106", "train.py", 11, 11, True),),
)

PASSED = (*(_training(name, steps) for name, steps in _STEPS.items()), _EVERY)
PASSED_UNTOLD = (
    *(replace(training, claims=()) for training in PASSED),
    replace(
        _EVERY,
        name="the rest of a window is all that a rule speaks of",
        claims=(("AMP203", "train.py", 13, 13, True),),
    ),
)
