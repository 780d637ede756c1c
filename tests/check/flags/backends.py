"""Options that choose between plain and scaled rounds: one value by several numbers that it is compared with, and by two names."""

from __future__ import annotations

from check.trainings.planted import Training

_NUMBERS_BEFORE = """import argparse

import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--bits", type=int, default=16)
args = parser.parse_args()
net = torch.nn.Linear(7, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
if args.bits >= 1:
    net, opt = amp.initialize(net, opt, opt_level="O1")
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    if {plain}:
        loss.backward()
    if args.bits >= 1:
        with amp.scale_loss(loss, opt) as scaled_loss:
            scaled_loss.backward()
    opt.step()
"""
_NUMBERS_AFTER = """import argparse

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--bits", type=int, default=16)
args = parser.parse_args()
net = torch.nn.Linear(7, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler(enabled=args.bits >= 1)
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    opt.zero_grad()
    with torch.cuda.amp.autocast(enabled=args.bits >= 1):
        loss = F.mse_loss(net(x), y)
    if {plain}:
        loss.backward()
    if args.bits >= 1:
        scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
"""
_NAMES_BEFORE = """import argparse

import torch
import torch.nn.functional as F
from apex import amp
from torch.nn.utils import clip_grad_norm_


class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.cfg = cfg
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        if not cfg.plain:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def learn(self, loss):
        cfg = self.cfg
        if cfg.plain:
            self.opt.zero_grad()
            loss.backward()
            clip_grad_norm_(self.net.parameters(), 1.0)
            self.opt.step()
        else:
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
            clip_grad_norm_(amp.master_params(self.opt), 1.0)
            self.opt.step()
            self.opt.zero_grad()

    def fit(self, loader, others):
        for x, y in loader:
            self.learn(F.mse_loss(self.net(x), y))
            {between}


parser = argparse.ArgumentParser()
parser.add_argument("--plain", action="store_true")
loader = [(torch.randn(6, 7), torch.randn(6, 3))]
Trainer(torch.nn.Linear(7, 3), parser.parse_args()).fit(loader, parser.parse_args())
"""
_NAMES_AFTER = """import argparse

import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.cfg = cfg
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=not cfg.plain)

    def learn(self, loss):
        cfg = self.cfg
        if cfg.plain:
            self.opt.zero_grad()
            loss.backward()
            clip_grad_norm_(self.net.parameters(), 1.0)
            self.opt.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            clip_grad_norm_(self.net.parameters(), 1.0)
            self.scaler.step(self.opt)
            self.scaler.update()
            self.opt.zero_grad()

    def fit(self, loader, others):
        for x, y in loader:
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.mse_loss(self.net(x), y)
            self.learn(loss)
            {between}


parser = argparse.ArgumentParser()
parser.add_argument("--plain", action="store_true")
loader = [(torch.randn(6, 7), torch.randn(6, 3))]
Trainer(torch.nn.Linear(7, 3), parser.parse_args()).fit(loader, parser.parse_args())
"""


def _numbers(name: str, plain: str) -> Training:
    before, after = _NUMBERS_BEFORE.format(plain=plain), _NUMBERS_AFTER.format(plain=plain)
    return Training(name, {"train.py": before}, {"train.py": after}, {})


def _names(name: str, between: str) -> Training:
    before, after = _NAMES_BEFORE.format(between=between), _NAMES_AFTER.format(between=between)
    return Training(name, {"train.py": before}, {"train.py": after}, {})


BACKENDS = [
    _numbers("what is at least 1 is not -1", "args.bits == -1"),
    _numbers("what is at least 1 is not below it", "1 > args.bits"),
    _numbers("what is at least 1 is no 0 either", "not args.bits"),
    _names("a variable and an attribute are one object", "print(others)"),
]
BACKENDS_MIXED = [
    _numbers("what is at least 1 may be 16", "args.bits == 16"),
    _numbers("what is at least 1 may be below 2", "args.bits < 2"),
    _names("an attribute that is set in between is another object", "self.cfg = others"),
    _names("an attribute of the object is set in between", "self.cfg.plain = not self.cfg.plain"),
]
