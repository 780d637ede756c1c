"""An autocast that is kept in a variable or an attribute, and entered by that: what it is made with decides."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net, half, deep):
        self.net = net
        self.half = half
        self.deep = deep
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        if self.half:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def fit(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        if self.half:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.opt.step()
        with contextlib.suppress(ValueError):
            print(loss.item())
"""
_AFTER = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, half, deep):
        self.net = net
        self.half = half
        self.deep = deep
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)
        self.casts = torch.cuda.amp.autocast(enabled=self.half)

    def fit(self, x, y):
        with self.casts:
            loss = F.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        with contextlib.suppress(ValueError):
            print(loss.item())
"""
_MADE = "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n"
_ENTERED = "        with self.casts:\n"
_AUTOCAST = "torch.cuda.amp.autocast"


def _faults(line: str, place: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return wrong values of a context that a line makes."""
    wrong = {
        "always on": f"{_AUTOCAST}()",
        "off": f"{_AUTOCAST}(enabled=False)",
        "the wrong way round": f"{_AUTOCAST}(enabled=not self.half)",
        "by another flag": f"{_AUTOCAST}(enabled=self.deep)",
        "nothing": "contextlib.nullcontext()",
        "the wrong one of two": f"contextlib.nullcontext() if self.half else {_AUTOCAST}()",
    }
    right = line.partition(" = ")[2].strip()
    return {f"{place} {what}": ((right, value),) for what, value in wrong.items()}


def _in_variable() -> Training:
    line = f"        casts = {_AUTOCAST}(enabled=self.half)\n"
    after = _AFTER.replace(_MADE, "").replace(_ENTERED, line + "        with casts:\n")
    return Training(
        "an autocast in a variable", files(_BEFORE), files(after), _faults(line, "it is")
    )


def _one_of_two() -> Training:
    text = f"        self.casts = {_AUTOCAST}() if self.half else contextlib.nullcontext()\n"
    return Training(
        "an autocast or nothing in an attribute",
        files(_BEFORE),
        files(_AFTER.replace(_MADE, text)),
        {},
    )


KEPT_CONTEXTS = (
    Training("an autocast in an attribute", files(_BEFORE), files(_AFTER), _faults(_MADE, "it is")),
    _in_variable(),
    _one_of_two(),
)
