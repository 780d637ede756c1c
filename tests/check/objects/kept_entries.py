"""An object keeps an entry of its options, and Apex goes by another one than the new text."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from apex import amp


class Trainer:
    def __init__(self, network, options):
        self.network = network
        self.mixed = options["half"]
        self.loud = options["loud"]
        self.optimizer = torch.optim.SGD(network.parameters(), lr=options["rate"])
        if self.mixed:
            self.network, self.optimizer = amp.initialize(self.network, self.optimizer)

    def fit(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            loss = self.network(x).pow(2).mean()
            if self.mixed:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()
            if self.loud:
                print(loss.item())


OPTIONS = {MADE}
Trainer(torch.nn.Linear(7, 3), OPTIONS).fit([torch.randn(6, 7)])
"""
_AFTER = """import torch


class Trainer:
    def __init__(self, network, options):
        self.network = network
        self.mixed = options["half"]
        self.loud = options["loud"]
        self.optimizer = torch.optim.SGD(network.parameters(), lr=options["rate"])
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.mixed)

    def fit(self, loader):
        for x in loader:
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.mixed):
                loss = self.network(x).pow(2).mean()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            if self.loud:
                print(loss.item())


OPTIONS = {MADE}
Trainer(torch.nn.Linear(7, 3), OPTIONS).fit([torch.randn(6, 7)])
"""
_SCALER = "GradScaler(enabled=self.mixed)"
_CASTS = "autocast(enabled=self.mixed)"
_MADE = {
    "written out": '{"half": bool(os.environ.get("HALF")), "loud": bool(os.environ.get("LOUD")), "rate": 0.1}',
    "of keywords": 'dict(half="--half" in sys.argv, loud="--loud" in sys.argv, rate=0.1)',
    "put in one by one": '{}\nOPTIONS["half"] = "--half" in sys.argv\nOPTIONS["loud"] = "--loud" in sys.argv\n'
    'OPTIONS["rate"] = 0.1',
    "of arguments": "vars(PARSER.parse_args())",
}
_PARSER = """import argparse

PARSER = argparse.ArgumentParser()
PARSER.add_argument("--half", action="store_true")
PARSER.add_argument("--loud", action="store_true")
PARSER.add_argument("--rate", type=float, default=0.1)
"""


def _text(program: str, how: str) -> str:
    head = _PARSER if how == "of arguments" else ""
    return "import os\nimport sys\n" + head + program.replace("{MADE}", _MADE[how])


KEPT_ENTRIES = tuple(
    Training(
        f"an entry of options {how}",
        {"train.py": _text(_BEFORE, how)},
        {"train.py": _text(_AFTER, how)},
        {
            "the other flag": ((_SCALER, "GradScaler(enabled=self.loud)"),),
            "the other entry": ((_SCALER, 'GradScaler(enabled=options["loud"])'),),
            "the other entry by get": ((_SCALER, 'GradScaler(enabled=options.get("loud"))'),),
            "the other flag for casts": ((_CASTS, "autocast(enabled=self.loud)"),),
            "the other flag for both": (
                (_SCALER, "GradScaler(enabled=self.loud)"),
                (_CASTS, "autocast(enabled=self.loud)"),
            ),
        },
    )
    for how in _MADE
)
