"""The state of the loss scale: set by hand, saved or loaded by another GradScaler, or under another key."""

from __future__ import annotations

from check.trainings.planted import Training, files

_FUNCTIONS_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def save(path, model, opt, epoch):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "amp": amp.state_dict(), "epoch": epoch}, path)


def load(path, model, opt):
    ckpt = torch.load(path)
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    amp.load_state_dict(ckpt["amp"])
    return ckpt["epoch"]


def main(args, model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    model, opt = amp.initialize(model, opt, opt_level="O1")
    start = load(args.path, model, opt) if args.resume else 0
    for epoch in range(start, args.epochs):
        for x, y in loader:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            with amp.scale_loss(loss, opt) as s:
                s.backward()
            opt.step()
        save(args.path, model, opt, epoch)
"""

_FUNCTIONS_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def save(path, model, opt, epoch, scaler):
    torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "amp": scaler.state_dict(), "epoch": epoch}, path)


def load(path, model, opt, scaler):
    ckpt = torch.load(path)
    model.load_state_dict(ckpt["model"])
    opt.load_state_dict(ckpt["opt"])
    scaler.load_state_dict(ckpt["amp"])
    return ckpt["epoch"]


def main(args, model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    start = load(args.path, model, opt, scaler) if args.resume else 0
    for epoch in range(start, args.epochs):
        for x, y in loader:
            opt.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
        save(args.path, model, opt, epoch, scaler)
"""

_TRAINER_BEFORE = """
# file: trainer.py
import torch
from apex import amp


class Trainer:
    def __init__(self, cfg, net):
        self.cfg = cfg
        self.net = net
        self.optim = torch.optim.Adam(net.parameters())
        self.net, self.optim = amp.initialize(self.net, self.optim, opt_level="O1")
        if cfg.resume:
            self.resume(torch.load(cfg.resume))

    def resume(self, state):
        self.net.load_state_dict(state["net"])
        if "amp" in state:
            amp.load_state_dict(state["amp"])

    def checkpoint(self):
        state = {"net": self.net.state_dict()}
        state["amp"] = amp.state_dict()
        torch.save(state, self.cfg.out)

    def fit(self, data):
        for i, x in enumerate(data):
            cost = self.net(x).mean()
            self.optim.zero_grad()
            with amp.scale_loss(cost, self.optim) as sc:
                sc.backward()
            self.optim.step()
            if i % 100 == 0:
                self.checkpoint()
"""

_TRAINER_AFTER = """
# file: trainer.py
import torch


class Trainer:
    def __init__(self, cfg, net):
        self.cfg = cfg
        self.net = net
        self.optim = torch.optim.Adam(net.parameters())
        self.scaler = torch.cuda.amp.GradScaler()
        if cfg.resume:
            self.resume(torch.load(cfg.resume))

    def resume(self, state):
        self.net.load_state_dict(state["net"])
        if "amp" in state:
            self.scaler.load_state_dict(state["amp"])

    def checkpoint(self):
        state = {"net": self.net.state_dict()}
        state["amp"] = self.scaler.state_dict()
        torch.save(state, self.cfg.out)

    def fit(self, data):
        for i, x in enumerate(data):
            with torch.cuda.amp.autocast():
                cost = self.net(x).mean()
            self.optim.zero_grad()
            self.scaler.scale(cost).backward()
            self.scaler.step(self.optim)
            self.scaler.update()
            if i % 100 == 0:
                self.checkpoint()
"""

STATES = (
    Training(
        "functions that save and load",
        files(_FUNCTIONS_BEFORE),
        files(_FUNCTIONS_AFTER),
        {
            "update(1.0)": (("scaler.update()", "scaler.update(1.0)"),),
            "update(new_scale=2**10)": (("scaler.update()", "scaler.update(new_scale=2.0 ** 10)"),),
            "update(get_scale)": (("scaler.update()", "scaler.update(scaler.get_scale())"),),
            "update(half)": (("scaler.update()", "scaler.update(scaler.get_scale() / 2)"),),
            "save fresh": (
                ('"amp": scaler.state_dict()', '"amp": torch.cuda.amp.GradScaler().state_dict()'),
            ),
            "load fresh": (
                (
                    'scaler.load_state_dict(ckpt["amp"])',
                    'torch.cuda.amp.GradScaler().load_state_dict(ckpt["amp"])',
                ),
            ),
            "save new key": (('"amp": scaler.state_dict()', '"scaler": scaler.state_dict()'),),
            "second for load": (
                (
                    '    scaler.load_state_dict(ckpt["amp"])',
                    '    other = torch.cuda.amp.GradScaler()\n    other.load_state_dict(ckpt["amp"])',
                ),
            ),
            "second for save": (
                ("    torch.save(", "    other = torch.cuda.amp.GradScaler()\n    torch.save("),
                ('"amp": scaler.state_dict()', '"amp": other.state_dict()'),
            ),
            "second var to load": (
                (
                    "    start = load(args.path, model, opt, scaler)",
                    "    other = torch.cuda.amp.GradScaler()\n    start = load(args.path, model, opt, other)",
                ),
            ),
        },
    ),
    Training(
        "a trainer that saves and loads",
        files(_TRAINER_BEFORE),
        files(_TRAINER_AFTER),
        {
            "update(1.0)": (("self.scaler.update()", "self.scaler.update(1.0)"),),
            "update(new_scale=2**10)": (
                ("self.scaler.update()", "self.scaler.update(new_scale=2.0 ** 10)"),
            ),
            "update(get_scale)": (
                ("self.scaler.update()", "self.scaler.update(self.scaler.get_scale())"),
            ),
            "update(half)": (
                ("self.scaler.update()", "self.scaler.update(self.scaler.get_scale() / 2)"),
            ),
            "save fresh": (
                (
                    'state["amp"] = self.scaler.state_dict()',
                    'state["amp"] = torch.cuda.amp.GradScaler().state_dict()',
                ),
            ),
            "load fresh": (
                (
                    'self.scaler.load_state_dict(state["amp"])',
                    'torch.cuda.amp.GradScaler().load_state_dict(state["amp"])',
                ),
            ),
            "save new key": (
                (
                    'state["amp"] = self.scaler.state_dict()',
                    'state["scaler"] = self.scaler.state_dict()',
                ),
            ),
            "asks other key": (('if "amp" in state', 'if "net" in state'),),
            "asks scaler key": (('if "amp" in state', 'if "scaler" in state'),),
            "second attr": (
                (
                    "        if cfg.resume",
                    "        self.kept = torch.cuda.amp.GradScaler()\n        if cfg.resume",
                ),
                ('state["amp"] = self.scaler.', 'state["amp"] = self.kept.'),
            ),
            "second attr load": (
                (
                    "        if cfg.resume",
                    "        self.kept = torch.cuda.amp.GradScaler()\n        if cfg.resume",
                ),
                ("self.scaler.load_state", "self.kept.load_state"),
            ),
        },
    ),
)
