"""Flags that are joined with amp: what is asked beside it stays as it was."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp

class Session:
    def __init__(self, args):
        self.network = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.scales = ASKED
        if self.scales:
            self.network, self.optimizer = amp.initialize(self.network, self.optimizer)

    def learn(self, x, y):
        loss = F.mse_loss(self.network(x), y)
        self.optimizer.zero_grad()
        if self.scales:
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        self.optimizer.step()
"""
_AFTER = """import torch
import torch.nn.functional as F

class Session:
    def __init__(self, args):
        self.network = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.scales = ASKED
        self.scaler = torch.cuda.amp.GradScaler(enabled=bool(self.scales))

    def learn(self, x, y):
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.mse_loss(self.network(x), y)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_SPELT = {
    "amp at the end": ("args.fp16 and amp", "args.fp16"),
    "amp at the head of two": ("amp and args.fp16 and args.cuda", "args.fp16 and args.cuda"),
    "amp in a call": ("bool(args.fp16 and amp)", "bool(args.fp16)"),
}
_WRONG = {
    "on for all": "True",
    "off for all": "False",
    "the other way": "not args.fp16",
    "another flag": "args.half",
}
JOINED_FLAGS = tuple(
    Training(
        f"a flag joined with {name}",
        {"main.py": _BEFORE.replace("ASKED", before)},
        {"main.py": _AFTER.replace("ASKED", after)},
        {
            fault: ((f"self.scales = {after}", f"self.scales = {text}"),)
            for fault, text in _WRONG.items()
        },
    )
    for name, (before, after) in _SPELT.items()
)
