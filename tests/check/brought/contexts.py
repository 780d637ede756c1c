"""A context or flag that is kept somewhere decides on casts: whatever it comes out of, it is read."""

from __future__ import annotations

from check.trainings.planted import Training, files

_ATTR_BEFORE = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net, half, log):
        self.net, self.half = net, half
        self.log = log
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

_ATTR_AFTER = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, half, log):
        self.net, self.half = net, half
        self.log = log
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

_CONFIG_BEFORE = """
# file: run.py
import argparse
import torch
from torch import nn
from apex import amp


class Config:
    def __init__(self, args):
        self.fp16, self.steps = args.fp16, args.steps


def epoch(cfg, model, opt, data):
    for x in data:
        opt.zero_grad()
        out = model(x).square().mean()
        if cfg.fp16:
            with amp.scale_loss(out, opt) as s:
                s.backward()
        else:
            out.backward()
        opt.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    cfg = Config(parser.parse_args())
    model = nn.Linear(3, 3)
    opt = torch.optim.Adam(model.parameters())
    if cfg.fp16:
        model, opt = amp.initialize(model, opt, opt_level="O1")
    epoch(cfg, model, opt, [torch.randn(2, 3)] * cfg.steps)


main()
"""

_CONFIG_AFTER = """
# file: run.py
import argparse
import torch
from torch import nn


class Config:
    def __init__(self, args):
        self.fp16, self.steps = args.fp16, args.steps


def epoch(cfg, model, opt, data, scaler):
    for x in data:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=cfg.fp16):
            out = model(x).square().mean()
        scaler.scale(out).backward()
        scaler.step(opt)
        scaler.update()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--steps", type=int, default=2)
    cfg = Config(parser.parse_args())
    model = nn.Linear(3, 3)
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler(enabled=cfg.fp16)
    epoch(cfg, model, opt, [torch.randn(2, 3)] * cfg.steps, scaler)


main()
"""

CONTEXTS = (
    Training(
        "an autocast kept in an attribute of a trainer",
        files(_ATTR_BEFORE),
        files(_ATTR_AFTER),
        {
            "list target off": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        [self.casts, self.tag] = [torch.cuda.amp.autocast(enabled=False), 'x']\n",
                ),
            ),
            "nested": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        (self.casts, self.a), self.tag = (torch.cuda.amp.autocast(enabled=False), 0), 'x'\n",
                ),
            ),
            "from call": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.casts, self.tag = self.made()\n",
                ),
                (
                    "    def fit(self",
                    "    def made(self):\n        return torch.cuda.amp.autocast(enabled=False), 1\n\n    def fit(self",
                ),
            ),
            "from call var": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        pair = torch.cuda.amp.autocast(enabled=False), 1\n        self.casts, self.tag = pair\n",
                ),
            ),
            "starred": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.casts, *self.tag = torch.cuda.amp.autocast(enabled=False), 1, 2\n",
                ),
            ),
            "for": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        for self.casts in [torch.cuda.amp.autocast(enabled=False)]:\n            pass\n",
                ),
            ),
            "dict": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.kept = {'casts': torch.cuda.amp.autocast(enabled=False)}\n",
                ),
                ("        with self.casts:\n", "        with self.kept['casts']:\n"),
            ),
            "list item": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.kept = [torch.cuda.amp.autocast(enabled=False), 1]\n",
                ),
                ("        with self.casts:\n", "        with self.kept[0]:\n"),
            ),
            "setattr": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        setattr(self, 'casts', torch.cuda.amp.autocast(enabled=False))\n",
                ),
            ),
            "class attr": (
                ("        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n", ""),
                (
                    "class Trainer:\n",
                    "class Trainer:\n    casts, tag = torch.cuda.amp.autocast(enabled=False), 1\n\n",
                ),
            ),
            "class attr plain": (
                ("        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n", ""),
                (
                    "class Trainer:\n",
                    "class Trainer:\n    casts = torch.cuda.amp.autocast(enabled=False)\n\n",
                ),
            ),
            "flag plain not": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.on = not self.half\n        self.casts = torch.cuda.amp.autocast(enabled=self.on)\n",
                ),
            ),
            "flag tuple not": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.on, self.tag = not self.half, 1\n        self.casts = torch.cuda.amp.autocast(enabled=self.on)\n",
                ),
            ),
            "flag in block not": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        self.on, self.tag = not self.half, 1\n",
                ),
                (
                    "        with self.casts:\n",
                    "        with torch.cuda.amp.autocast(enabled=self.on):\n",
                ),
            ),
            "flag in block local": (
                ("        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n", ""),
                (
                    "        with self.casts:\n",
                    "        on, tag = not self.half, 1\n        with torch.cuda.amp.autocast(enabled=on):\n",
                ),
            ),
            "scaler flag not": (
                (
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)\n",
                    "        self.on, self.tag = not self.half, 1\n        self.scaler = torch.cuda.amp.GradScaler(enabled=self.on)\n",
                ),
            ),
            "getter off": (
                ("        with self.casts:\n", "        with self.ctx():\n"),
                (
                    "    def fit(self",
                    "    def ctx(self):\n        return torch.cuda.amp.autocast(enabled=False)\n\n    def fit(self",
                ),
            ),
            "property off": (
                ("        with self.casts:\n", "        with self.ctx:\n"),
                (
                    "    def fit(self",
                    "    @property\n    def ctx(self):\n        return torch.cuda.amp.autocast(enabled=False)\n\n    def fit(self",
                ),
            ),
            "partial off": (
                (
                    "        self.casts = torch.cuda.amp.autocast(enabled=self.half)\n",
                    "        import functools\n        self.casts = functools.partial(torch.cuda.amp.autocast, enabled=False)\n",
                ),
                ("        with self.casts:\n", "        with self.casts():\n"),
            ),
        },
    ),
    Training(
        "a flag kept in an object of options",
        files(_CONFIG_BEFORE),
        files(_CONFIG_AFTER),
        {
            "ctx attr": (
                (
                    "        self.fp16, self.steps = args.fp16, args.steps\n",
                    "        self.fp16, self.steps = args.fp16, args.steps\n        self.casts, self.more = torch.cuda.amp.autocast(enabled=False), 1\n",
                ),
                ("with torch.cuda.amp.autocast(enabled=cfg.fp16)", "with cfg.casts"),
            ),
        },
    ),
)
