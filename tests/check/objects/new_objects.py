"""Objects that are made one after another, each with a flag of its own, by which it asks Apex and makes its GradScaler."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from apex import amp


class Runner:
    def __init__(self, options, batches):
        self.batches = batches
        self.net = torch.nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.half = options["half"]
        if self.half:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")
        {behind}

    def train(self):
        for x in self.batches:
            loss = self.net(x).square().mean()
            self.optimizer.zero_grad()
            if self.half:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()


def main(every, batches):
    for options in every:
        runner = Runner(dict(options), batches)
        runner.train()
"""
_AFTER = """import torch


class Runner:
    def __init__(self, options, batches):
        self.batches = batches
        self.net = torch.nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.half = options["half"]
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)
        {behind}

    def train(self):
        for x in self.batches:
            with torch.cuda.amp.autocast(enabled=self.half):
                loss = self.net(x).square().mean()
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


def main(every, batches):
    for options in every:
        runner = Runner(dict(options), batches)
        runner.train()
"""
_MADE = "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)\n"
_NAME = 'self.name = options["name"]'
_CLEARED = "self.half = False"
_ALWAYS_BEFORE = (
    _BEFORE.replace("        if self.half:\n            self.net, ", "        self.net, ")
    .replace('opt_level="O1")', 'opt_level="O1", enabled=self.half)')
    .replace("            if self.half:\n                with", "            with")
    .replace("                    scaled_loss.b", "                scaled_loss.b")
    .replace("            else:\n                loss.backward()\n", "")
)
_ALWAYS_AFTER = _AFTER.replace(
    "autocast(enabled=self.half)", "autocast(enabled=self.scaler.is_enabled())"
)


def _files(text: str, behind: str) -> dict[str, str]:
    return {"train.py": text.format(behind=behind)}


NEW_OBJECTS = (
    Training(
        "each object has a flag of its own",
        _files(_BEFORE, _NAME),
        _files(_AFTER, _NAME),
        {
            "the GradScaler is on in any case": (
                (_MADE, "        self.scaler = torch.cuda.amp.GradScaler()\n"),
            ),
        },
    ),
    Training(
        "each object clears its flag behind the initialize",
        _files(_ALWAYS_BEFORE, _CLEARED),
        _files(_ALWAYS_AFTER, _CLEARED),
        {
            "the GradScaler is made behind that": (
                (_MADE, ""),
                ("\n    def train", f"{_MADE}\n    def train"),
            ),
        },
    ),
)
