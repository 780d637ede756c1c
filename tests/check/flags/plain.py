"""Losses that Apex did not scale while it was on, and that a GradScaler scales: a rule of the run must say so."""

from __future__ import annotations

from dataclasses import replace

from check.trainings.planted import Training, files

_OUTSIDE_BEFORE = """
# file: trainer.py
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, model, half):
        self.half = half
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model = model
        if self.half:
            self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        if self.half:
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.optimizer.step()

# file: main.py
import torch
from trainer import Trainer

trainer = Trainer(torch.nn.Linear(4, 2).cuda(), True)
for epoch in range(10):
    if epoch == 5:
        trainer.half = False
    trainer.learn(torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())
"""
_OUTSIDE_AFTER = """
# file: trainer.py
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, half):
        self.half = half
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model = model
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

# file: main.py
import torch
from trainer import Trainer

trainer = Trainer(torch.nn.Linear(4, 2).cuda(), True)
for epoch in range(10):
    if epoch == 5:
        trainer.half = False
    trainer.learn(torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())
"""
_TWO_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for epoch in range(args.epochs):
        scale = args.fp16 and epoch > 2
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if scale:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            optimizer.step()
"""
_TWO_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=args.fp16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_UNLESS_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(model, loader, scaled_from):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if epoch < scaled_from:
                loss.backward()
            else:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            optimizer.step()
"""
_UNLESS_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(model, loader, scaled_from):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for epoch in range(9):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
"""
_GP_BEFORE = """
# file: train.py
import torch
from apex import amp


def penalty(critic, real, fake):
    mixed = (real + fake).div(2).detach().requires_grad_()
    grad = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    return (grad.norm(2, 1) - 1).pow(2).mean()


def main(critic, gen, loader):
    oc = torch.optim.Adam(critic.parameters())
    [critic, gen], oc = amp.initialize([critic, gen], oc, opt_level="O1")
    for real, z in loader:
        oc.zero_grad()
        fake = gen(z).detach()
        loss = critic(fake).mean() - critic(real).mean()
        with amp.scale_loss(loss, oc) as scaled:
            scaled.backward()
        penalty(critic, real, fake).backward()
        oc.step()
"""
_GP_AFTER = """
# file: train.py
import torch


def penalty(critic, real, fake):
    mixed = (real + fake).div(2).detach().requires_grad_()
    grad = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
    with torch.cuda.amp.autocast():
        return (grad.norm(2, 1) - 1).pow(2).mean()


def main(critic, gen, loader):
    oc = torch.optim.Adam(critic.parameters())
    scaler = torch.cuda.amp.GradScaler()
    for real, z in loader:
        oc.zero_grad()
        with torch.cuda.amp.autocast():
            fake = gen(z).detach()
            loss = critic(fake).mean() - critic(real).mean()
        scaler.scale(loss).backward()
        with torch.cuda.amp.autocast():
            total_loss = penalty(critic, real, fake)
        scaler.scale(total_loss).backward()
        scaler.step(oc)
        scaler.update()
"""
_KEPT_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(args, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.fp16:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for epoch in range(args.epochs):
        plain = not args.fp16
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if plain:
                loss.backward()
            else:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            optimizer.step()
"""

_METHOD_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

class Learner:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def supervised(self, x, y):
        self.opt.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        with amp.scale_loss(loss, self.opt) as scaled:
            scaled.backward()
        self.opt.step()

    def consistency(self, x, other):
        self.opt.zero_grad()
        loss = F.mse_loss(self.net(x), self.net(other))
        loss.backward()
        self.opt.step()

def main(loader, pairs):
    learner = Learner(torch.nn.Linear(4, 2))
    for x, y in loader:
        learner.supervised(x, y)
    for x, other in pairs:
        learner.consistency(x, other)

main([], [])
"""
_METHOD_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F

class Learner:
    def __init__(self, net):
        self.net = net.cuda()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def supervised(self, x, y):
        self.opt.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

    def consistency(self, x, other):
        self.opt.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(self.net(x), self.net(other))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()

def main(loader, pairs):
    learner = Learner(torch.nn.Linear(4, 2))
    for x, y in loader:
        learner.supervised(x, y)
    for x, other in pairs:
        learner.consistency(x, other)

main([], [])
"""


def _training(name: str, before: str, after: str, file: str, line: int) -> Training:
    return Training(name, files(before), files(after), {}, (("AMP116", file, line, line, True),))


PLAIN = (
    _training(
        "a flag of an object that is cleared from outside",
        _OUTSIDE_BEFORE,
        _OUTSIDE_AFTER,
        "trainer.py",
        21,
    ),
    _training("a flag for the loss beside that for Apex", _TWO_BEFORE, _TWO_AFTER, "train.py", 19),
    _training("epochs without a scale", _UNLESS_BEFORE, _UNLESS_AFTER, "train.py", 14),
    _training("a loss of another method", _METHOD_BEFORE, _METHOD_AFTER, "train.py", 21),
    _training("a penalty behind a scaled loss", _GP_BEFORE, _GP_AFTER, "train.py", 20),
)
KEPT = Training(
    "the opposite of the flag in a variable",
    files(_KEPT_BEFORE),
    files(_TWO_AFTER),
    {"one that stays plain": (("scaler.scale(loss).backward()", "loss.backward()"),)},
)
_MORE = (
    ("plain = not args.fp16", "plain = not args.fp16 or epoch < 2"),
    (
        " = not args.fp16\n",
        " = not args.fp16\n        if epoch < 2:\n            plain = not args.warm\n",
    ),
    ("    for epoch in", "    args.fp16 = args.fp16 and not args.slow\n    for epoch in"),
)
PLAIN_UNTOLD = (
    *(replace(training, claims=()) for training in PLAIN),
    *(
        Training(
            f"the opposite of the flag and more: {new}",
            files(_KEPT_BEFORE.replace(old, new)),
            KEPT.after,
            {},
        )
        for old, new in _MORE
    ),
)
