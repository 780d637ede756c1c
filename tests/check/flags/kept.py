"""A loss stays plain under the flag that keeps a GradScaler off, as an attribute or parameter keeps it."""

from __future__ import annotations

from check.trainings.planted import Training, files

_OBJECT_BEFORE = """
# file: train.py
import sys
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net, fp16, slow):
        self.net, self.fp16, self.slow = net, fp16, slow
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        if fp16:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def scaled(self, loss):
        def run():
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()

        if self.fp16:
            run()
        else:
            loss.backward()

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            self.scaled(F.mse_loss(self.net(x), y))
            self.opt.step()


trainer = Trainer(torch.nn.Linear(4, 2), "--half" in sys.argv, False)
trainer.fit([(torch.randn(3, 4), torch.randn(3, 2))])
"""
_OBJECT_AFTER = """
# file: train.py
import sys
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, fp16, slow):
        self.net, self.fp16, self.slow = net, fp16, slow
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=fp16)

    def scaled(self, loss):
        def run():
            self.scaler.scale(loss).backward()

        if self.fp16:
            run()
        else:
            loss.backward()

    def fit(self, batches):
        for x, y in batches:
            self.opt.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.mse_loss(self.net(x), y)
            self.scaled(loss)
            self.scaler.step(self.opt)
            self.scaler.update()


trainer = Trainer(torch.nn.Linear(4, 2), "--half" in sys.argv, False)
trainer.fit([(torch.randn(3, 4), torch.randn(3, 2))])
"""
_GIVEN_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def run(scaled):
    scaled.backward()


def train(net, opt, batches, half):
    for x, y in batches:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if half:
            with amp.scale_loss(loss, opt) as scaled:
                run(scaled)
        else:
            loss.backward()
        opt.step()


parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--warm", action="store_true")
args = parser.parse_args()
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
if args.fp16:
    net, opt = amp.initialize(net, opt, opt_level="O1")
train(net, opt, [(torch.randn(3, 4), torch.randn(3, 2))], args.fp16)
"""
_GIVEN_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def run(scaled):
    scaled.backward()


def train(net, opt, batches, half, scaler):
    for x, y in batches:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = F.mse_loss(net(x), y)
        if half:
            run(scaler.scale(loss))
        else:
            loss.backward()
        scaler.step(opt)
        scaler.update()


parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--warm", action="store_true")
args = parser.parse_args()
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
train(net, opt, [(torch.randn(3, 4), torch.randn(3, 2))], args.fp16, scaler)
"""
KEPT_BY = (
    Training(
        "a loss that is plain under the attribute that keeps the flag",
        files(_OBJECT_BEFORE),
        files(_OBJECT_AFTER),
        {
            "by another parameter": (("enabled=fp16", "enabled=slow"),),
            "by two parameters": (("enabled=fp16", "enabled=fp16 or slow"),),
        },
    ),
    Training(
        "a loss that is plain under the parameter that is given the flag",
        files(_GIVEN_BEFORE),
        files(_GIVEN_AFTER),
        {
            "by another option": (
                ("GradScaler(enabled=args.fp16)", "GradScaler(enabled=args.warm)"),
            ),
            "by an option or another": (
                ("GradScaler(enabled=args.fp16)", "GradScaler(enabled=args.fp16 or args.warm)"),
            ),
        },
    ),
)


def _spoilt(name: str, before: str, after: str, old: str, new: str) -> Training:
    return Training(name, files(before.replace(old, new)), files(after.replace(old, new)), {})


KEPT_NO_MORE = (
    _spoilt(
        "an attribute that is cleared from outside",
        _OBJECT_BEFORE,
        _OBJECT_AFTER,
        "\ntrainer.fit",
        "\ntrainer.fp16 = False\ntrainer.fit",
    ),
    _spoilt(
        "an attribute that keeps another parameter",
        _OBJECT_BEFORE,
        _OBJECT_AFTER,
        "= net, fp16, slow",
        "= net, slow, fp16",
    ),
    _spoilt(
        "a parameter of the constructor that is bound anew",
        _OBJECT_BEFORE,
        _OBJECT_AFTER,
        "        self.opt = ",
        "        fp16 = fp16 or slow\n        self.opt = ",
    ),
    _spoilt(
        "a parameter that is bound anew",
        _GIVEN_BEFORE,
        _GIVEN_AFTER,
        "    for x, y in",
        "    half = half and len(batches) > 9\n    for x, y in",
    ),
    _spoilt(
        "a parameter that gets another option",
        _GIVEN_BEFORE,
        _GIVEN_AFTER,
        "3, 2))], args.fp16",
        "3, 2))], args.warm",
    ),
)
