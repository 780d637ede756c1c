"""Two pairs of adversaries of one class, and a program that only tests one: decisions of a planner, each taken wrongly."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: cycle.py
import itertools
import torch
import torch.nn as nn
from apex import amp


class CycleModel:
    def __init__(self, opt):
        self.opt = opt
        self.gab = nn.Conv2d(3, 3, 3, padding=1).cuda()
        self.gba = nn.Conv2d(3, 3, 3, padding=1).cuda()
        self.da = nn.Conv2d(3, 1, 4).cuda()
        self.db = nn.Conv2d(3, 1, 4).cuda()
        self.crit = nn.MSELoss()
        self.cycle = nn.L1Loss()
        self.opt_g = torch.optim.Adam(itertools.chain(self.gab.parameters(), self.gba.parameters()), lr=opt.lr)
        self.opt_d = torch.optim.Adam(itertools.chain(self.da.parameters(), self.db.parameters()), lr=opt.lr)
        if opt.half:
            [self.gab, self.gba, self.da, self.db], [self.opt_g, self.opt_d] = amp.initialize(
                [self.gab, self.gba, self.da, self.db], [self.opt_g, self.opt_d], opt_level="O1", num_losses=3
            )

    def forward(self):
        self.fake_b = self.gab(self.real_a)
        self.rec_a = self.gba(self.fake_b)
        self.fake_a = self.gba(self.real_b)
        self.rec_b = self.gab(self.fake_a)

    def backward_d(self, net, real, fake, which):
        loss = (self.crit(net(real), torch.ones(1).cuda()) + self.crit(net(fake.detach()), torch.zeros(1).cuda())) * 0.5
        if self.opt.half:
            with amp.scale_loss(loss, self.opt_d, loss_id=which) as scaled:
                scaled.backward()
        else:
            loss.backward()
        return loss

    def backward_g(self):
        adversarial = self.crit(self.db(self.fake_b), torch.ones(1).cuda()) + self.crit(self.da(self.fake_a), torch.ones(1).cuda())
        self.loss_g = adversarial + 10 * (self.cycle(self.rec_a, self.real_a) + self.cycle(self.rec_b, self.real_b))
        if self.opt.half:
            with amp.scale_loss(self.loss_g, self.opt_g, loss_id=0) as scaled:
                scaled.backward()
        else:
            self.loss_g.backward()

    def optimize(self, a, b):
        self.real_a, self.real_b = a.cuda(), b.cuda()
        self.forward()
        for p in itertools.chain(self.da.parameters(), self.db.parameters()):
            p.requires_grad_(False)
        self.opt_g.zero_grad()
        self.backward_g()
        self.opt_g.step()
        for p in itertools.chain(self.da.parameters(), self.db.parameters()):
            p.requires_grad_(True)
        self.opt_d.zero_grad()
        self.backward_d(self.da, self.real_a, self.fake_a, 1)
        self.backward_d(self.db, self.real_b, self.fake_b, 2)
        self.opt_d.step()

    def test(self, a):
        with torch.no_grad():
            return self.gab(a.cuda())
# file: train.py
import argparse
import torch
from cycle import CycleModel

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--lr", type=float, default=2e-4)
opt = parser.parse_args()
model = CycleModel(opt)
for _ in range(4):
    model.optimize(torch.randn(1, 3, 8, 8), torch.randn(1, 3, 8, 8))
print(model.test(torch.randn(1, 3, 8, 8)).mean())
# file: test.py
import torch
from argparse import Namespace
from cycle import CycleModel

model = CycleModel(Namespace(half=False, lr=0.0))
print(model.test(torch.randn(1, 3, 8, 8)).mean())
"""
_AFTER = """
# file: cycle.py
import itertools
import torch
import torch.nn as nn


class CycleModel:
    def __init__(self, opt):
        self.opt = opt
        self.gab = nn.Conv2d(3, 3, 3, padding=1).cuda()
        self.gba = nn.Conv2d(3, 3, 3, padding=1).cuda()
        self.da = nn.Conv2d(3, 1, 4).cuda()
        self.db = nn.Conv2d(3, 1, 4).cuda()
        self.crit = nn.MSELoss()
        self.cycle = nn.L1Loss()
        self.opt_g = torch.optim.Adam(itertools.chain(self.gab.parameters(), self.gba.parameters()), lr=opt.lr)
        self.opt_d = torch.optim.Adam(itertools.chain(self.da.parameters(), self.db.parameters()), lr=opt.lr)
        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)

    def forward(self):
        self.fake_b = self.gab(self.real_a)
        self.rec_a = self.gba(self.fake_b)
        self.fake_a = self.gba(self.real_b)
        self.rec_b = self.gab(self.fake_a)

    def backward_d(self, net, real, fake, which):
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = (self.crit(net(real), torch.ones(1).cuda()) + self.crit(net(fake.detach()), torch.zeros(1).cuda())) * 0.5
        self.scaler.scale(loss).backward()
        return loss

    def backward_g(self):
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            adversarial = self.crit(self.db(self.fake_b), torch.ones(1).cuda()) + self.crit(self.da(self.fake_a), torch.ones(1).cuda())
            self.loss_g = adversarial + 10 * (self.cycle(self.rec_a, self.real_a) + self.cycle(self.rec_b, self.real_b))
        self.scaler.scale(self.loss_g).backward()

    def optimize(self, a, b):
        self.real_a, self.real_b = a.cuda(), b.cuda()
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            self.forward()
        for p in itertools.chain(self.da.parameters(), self.db.parameters()):
            p.requires_grad_(False)
        self.opt_g.zero_grad()
        self.backward_g()
        self.scaler.step(self.opt_g)
        for p in itertools.chain(self.da.parameters(), self.db.parameters()):
            p.requires_grad_(True)
        self.opt_d.zero_grad()
        self.backward_d(self.da, self.real_a, self.fake_a, 1)
        self.backward_d(self.db, self.real_b, self.fake_b, 2)
        self.scaler.step(self.opt_d)
        self.scaler.update()

    def test(self, a):
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            return self.gab(a.cuda())
# file: train.py
import argparse
import torch
from cycle import CycleModel

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--lr", type=float, default=2e-4)
opt = parser.parse_args()
model = CycleModel(opt)
for _ in range(4):
    model.optimize(torch.randn(1, 3, 8, 8), torch.randn(1, 3, 8, 8))
print(model.test(torch.randn(1, 3, 8, 8)).mean())
# file: test.py
import torch
from argparse import Namespace
from cycle import CycleModel

model = CycleModel(Namespace(half=False, lr=0.0))
print(model.test(torch.randn(1, 3, 8, 8)).mean())
"""
_WRONG = {
    'forward without casts': (
        ('        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n            self.forward()\n', '        self.forward()\n'),
    ),
    'd loss without casts': (
        ('        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n            loss = (', '        loss = ('),
    ),
    'g loss without casts': (
        ('        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n            adversarial', '        if True:\n            adversarial'),
    ),
    'test without casts': (
        ('torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):', 'torch.no_grad():'),
    ),
    'test always cast': (
        ('torch.no_grad(), torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):', 'torch.no_grad(), torch.cuda.amp.autocast():'),
    ),
    'scaler always on': (
        ('GradScaler(enabled=opt.half)', 'GradScaler()'),
    ),
    'steps swapped': (
        ('self.scaler.step(self.opt_g)', 'self.scaler.step(self.TMP)'),
        ('self.scaler.step(self.opt_d)', 'self.scaler.step(self.opt_g)'),
        ('self.scaler.step(self.TMP)', 'self.scaler.step(self.opt_d)'),
    ),
    'update in backward_d': (
        ('        self.scaler.scale(loss).backward()\n        return loss', '        self.scaler.scale(loss).backward()\n        self.scaler.update()\n        return loss'),
    ),
    'unscale other': (
        ('        self.scaler.step(self.opt_d)\n', '        self.scaler.unscale_(self.opt_g)\n        self.scaler.step(self.opt_d)\n'),
    ),
    'two scalers, one updated': (
        ('        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)\n', '        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)\n        self.scaler_d = torch.cuda.amp.GradScaler(enabled=opt.half)\n'),
        ('self.scaler.step(self.opt_d)', 'self.scaler_d.step(self.opt_d)'),
        ('self.scaler.scale(loss)', 'self.scaler_d.scale(loss)'),
    ),
    'two scalers mixed up': (
        ('        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)\n', '        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)\n        self.scaler_d = torch.cuda.amp.GradScaler(enabled=opt.half)\n'),
        ('self.scaler.step(self.opt_d)\n        self.scaler.update()', 'self.scaler_d.step(self.opt_d)\n        self.scaler.update()\n        self.scaler_d.update()'),
    ),
    'one d loss plain': (
        ('        self.scaler.scale(loss).backward()\n        return loss', '        (self.scaler.scale(loss) if which == 1 else loss).backward()\n        return loss'),
    ),
    'g plain': (
        ('self.scaler.scale(self.loss_g).backward()', 'self.loss_g.backward()'),
    ),
    'zero_grad moved': (
        ('        self.opt_d.zero_grad()\n        self.backward_d(self.da, self.real_a, self.fake_a, 1)\n', '        self.backward_d(self.da, self.real_a, self.fake_a, 1)\n        self.opt_d.zero_grad()\n'),
    ),
    'scaler on opt.lr': (
        ('GradScaler(enabled=opt.half)', 'GradScaler(enabled=opt.lr)'),
    ),
    'class scaler': (
        ('class CycleModel:\n', 'class CycleModel:\n    scaler = torch.cuda.amp.GradScaler()\n\n'),
        ('        self.scaler = torch.cuda.amp.GradScaler(enabled=opt.half)\n', ''),
    ),
}  # fmt: skip
ADVERSARIES = (
    Training(
        "two pairs of adversaries of one class",
        files(_BEFORE),
        files(_AFTER),
        _WRONG,
        (("AMP102", "cycle.py", 17, 17, True),),
    ),
)
