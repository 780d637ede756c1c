"""One part of what switches native AMP is dropped or added, where Apex went by several or by one."""

from __future__ import annotations

from check.trainings.planted import Training, files

_AND_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16 and args.cuda:
        model, opt = amp.initialize(model, opt, opt_level="O1")
    for _ in range(3):
        x = torch.randn(3, 4)
        loss = model(x).square().mean()
        opt.zero_grad()
        if args.fp16 and args.cuda:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()


main()
"""

_AND_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.cuda)
    for _ in range(3):
        x = torch.randn(3, 4)
        with torch.cuda.amp.autocast(enabled=args.fp16 and args.cuda):
            loss = model(x).square().mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


main()
"""

_SINGLE_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16:
        model, opt = amp.initialize(model, opt, opt_level="O1")
    for _ in range(3):
        x = torch.randn(3, 4)
        loss = model(x).square().mean()
        opt.zero_grad()
        if args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()


main()
"""

_SINGLE_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for _ in range(3):
        x = torch.randn(3, 4)
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = model(x).square().mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


main()
"""

_ENGINE_BEFORE = """
# file: lib/engine.py
import torch
from apex import amp


class Engine:
    def __init__(self, cfg, net):
        self.cfg = cfg
        self.level = cfg["level"]
        self.mixed = cfg["mixed"] and self.level != "O0"
        self.verbose = cfg["verbose"]
        self.net = net
        self.optim = torch.optim.AdamW(net.parameters())
        if self.mixed:
            self.net, self.optim = amp.initialize(self.net, self.optim, opt_level="O1")

    def train(self, batches):
        for b in batches:
            self.optim.zero_grad()
            cost = self.net(b).abs().mean()
            if self.mixed:
                with amp.scale_loss(cost, self.optim) as sc:
                    sc.backward()
            else:
                cost.backward()
            self.optim.step()

    def test(self, batches):
        with torch.no_grad():
            return [self.net(b) for b in batches]
"""

_ENGINE_AFTER = """
# file: lib/engine.py
import torch


class Engine:
    def __init__(self, cfg, net):
        self.cfg = cfg
        self.level = cfg["level"]
        self.mixed = cfg["mixed"] and self.level != "O0"
        self.verbose = cfg["verbose"]
        self.net = net
        self.optim = torch.optim.AdamW(net.parameters())
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.mixed)

    def train(self, batches):
        for b in batches:
            self.optim.zero_grad()
            with torch.cuda.amp.autocast(enabled=self.mixed):
                cost = self.net(b).abs().mean()
            self.scaler.scale(cost).backward()
            self.scaler.step(self.optim)
            self.scaler.update()

    def test(self, batches):
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            return [self.net(b) for b in batches]
"""

_LEVEL_BEFORE = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--opt_level", default="O1")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16 and args.opt_level != "O0":
        model, opt = amp.initialize(model, opt, opt_level=args.opt_level)
    for _ in range(3):
        x = torch.randn(3, 4)
        loss = model(x).square().mean()
        opt.zero_grad()
        if args.fp16 and args.opt_level != "O0":
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()


main()
"""

_LEVEL_AFTER = """
# file: train.py
import argparse
import torch
import torch.nn.functional as F


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--deep", action="store_true")
    parser.add_argument("--opt_level", default="O1")
    args = parser.parse_args()
    model = torch.nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.opt_level != "O0")
    for _ in range(3):
        x = torch.randn(3, 4)
        with torch.cuda.amp.autocast(enabled=args.fp16 and args.opt_level != "O0"):
            loss = model(x).square().mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


main()
"""

CONDITIONS = (
    Training(
        "two options switch Apex",
        files(_AND_BEFORE),
        files(_AND_AFTER),
        {
            "casts drop 2": (
                ("autocast(enabled=args.fp16 and args.cuda)", "autocast(enabled=args.fp16)"),
            ),
            "casts drop 1": (
                ("autocast(enabled=args.fp16 and args.cuda)", "autocast(enabled=args.cuda)"),
            ),
            "casts or": (
                (
                    "autocast(enabled=args.fp16 and args.cuda)",
                    "autocast(enabled=args.fp16 or args.cuda)",
                ),
            ),
            "scaler drop 2": (
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.fp16)"),
            ),
            "scaler drop 1": (
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.cuda)"),
            ),
            "scaler or": (
                (
                    "GradScaler(enabled=args.fp16 and args.cuda)",
                    "GradScaler(enabled=args.fp16 or args.cuda)",
                ),
            ),
            "both drop 2": (
                ("autocast(enabled=args.fp16 and args.cuda)", "autocast(enabled=args.fp16)"),
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.fp16)"),
            ),
        },
    ),
    Training(
        "one option switches Apex",
        files(_SINGLE_BEFORE),
        files(_SINGLE_AFTER),
        {
            "casts or": (
                ("autocast(enabled=args.fp16)", "autocast(enabled=args.fp16 or args.deep)"),
            ),
            "scaler or": (
                ("GradScaler(enabled=args.fp16)", "GradScaler(enabled=args.fp16 or args.deep)"),
            ),
            "casts cond": (
                (
                    "autocast(enabled=args.fp16)",
                    "autocast(enabled=args.deep if args.fp16 else False)",
                ),
            ),
        },
    ),
    Training(
        "a flag of two parts switches Apex",
        files(_ENGINE_BEFORE),
        files(_ENGINE_AFTER),
        {
            "casts and verbose": (
                ("autocast(enabled=self.mixed)", "autocast(enabled=self.mixed and self.verbose)"),
            ),
            "casts and not verbose": (
                (
                    "autocast(enabled=self.mixed)",
                    "autocast(enabled=self.mixed and not self.verbose)",
                ),
            ),
            "test and verbose": (
                (
                    "autocast(enabled=self.scaler.is_enabled())",
                    "autocast(enabled=self.scaler.is_enabled() and self.verbose)",
                ),
            ),
            "test training": (
                (
                    "autocast(enabled=self.scaler.is_enabled())",
                    "autocast(enabled=self.mixed and self.net.training)",
                ),
            ),
            "scaler and verbose": (
                (
                    "GradScaler(enabled=self.mixed)",
                    "GradScaler(enabled=self.mixed and self.verbose)",
                ),
            ),
        },
    ),
    Training(
        "an option and a level switch Apex",
        files(_LEVEL_BEFORE),
        files(_LEVEL_AFTER),
        {
            "casts drop level": (
                (
                    'autocast(enabled=args.fp16 and args.opt_level != "O0"',
                    "autocast(enabled=args.fp16",
                ),
            ),
            "casts drop fp16": (
                (
                    'autocast(enabled=args.fp16 and args.opt_level != "O0"',
                    'autocast(enabled=args.opt_level != "O0"',
                ),
            ),
            "scaler drop": (
                (
                    'GradScaler(enabled=args.fp16 and args.opt_level != "O0"',
                    "GradScaler(enabled=args.fp16",
                ),
            ),
        },
    ),
)
