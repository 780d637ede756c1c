"""A GradScaler that is made behind the test for a first run, and not again in front of it."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = None

    def get(self):
        if self.optimizer is None:
            optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            self.net, self.optimizer = amp.initialize(self.net, optimizer, opt_level="O1")
        return self.optimizer

    def fit(self, batches):
        for x, y in batches:
            self.get().zero_grad()
            loss = F.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, self.get()) as scaled:
                scaled.backward()
            self.get().step()
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.net = net
        self.optimizer = None

    def get(self):
        if self.optimizer is None:
            optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            self.optimizer = optimizer
            self.scaler = torch.cuda.amp.GradScaler()
        return self.optimizer

    def fit(self, batches):
        for x, y in batches:
            self.get().zero_grad()
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.mse_loss(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.get())
            self.scaler.update()
"""
_MADE = "            self.scaler = torch.cuda.amp.GradScaler()\n"
_ALWAYS = "        self.scaler = torch.cuda.amp.GradScaler(enabled={})\n"
_TEST = "        if self.optimizer is None:\n"


def _made_by(condition: str, test: str = _TEST) -> tuple[tuple[str, str], ...]:
    return ((_MADE, ""), (_TEST, _ALWAYS.format(condition) + test))


def _asked(test: str, *more: tuple[str, str], condition: str, name: str) -> Training:
    """Return the same training with another test for the first run."""

    def put(text: str) -> dict[str, str]:
        for was, now in ((_TEST, test), *more):
            text = text.replace(was, now)
        return files(text)

    faults = {"made in front of the test": ((_MADE, ""), (test, _ALWAYS.format(condition) + test))}
    return Training(name, put(_BEFORE), put(_AFTER), faults)


SET_BEHIND = (
    Training(
        "initialized as it is asked for the first time",
        files(_BEFORE),
        files(_AFTER),
        {
            "made in front of the test": _made_by("self.optimizer is None"),
            "made by a variable of the test": (
                (_MADE, ""),
                (
                    _TEST,
                    "        first = self.optimizer is None\n" + _ALWAYS.format("first") + _TEST,
                ),
            ),
        },
    ),
    _asked(
        '        if not hasattr(self, "optimizer"):\n',
        ("        self.optimizer = None\n", ""),
        condition='not hasattr(self, "optimizer")',
        name="initialized where an attribute is missing",
    ),
    _asked(
        "        if self.is_new():\n",
        (
            "    def get(self):\n",
            "    def is_new(self):\n        return self.optimizer is None\n\n    def get(self):\n",
        ),
        condition="self.is_new()",
        name="initialized where a method says that it is the first time",
    ),
)
