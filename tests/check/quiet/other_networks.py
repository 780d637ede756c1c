"""Clips of what Apex gave for an optimizer: those of another network, or of a part of it, take other gradients."""

from __future__ import annotations

from check.trainings.planted import Training, files

_PAIR_BEFORE = """\
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.student = torch.nn.Linear(4, 3)
        self.teacher = torch.nn.Linear(4, 3)

def train(pair, opt, loader):
    pair.student, opt = amp.initialize(pair.student, opt)
    for x, y in loader:
        opt.zero_grad()
        loss = F.mse_loss(pair.student(x), y)
        with amp.scale_loss(loss, opt) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)
        opt.step()

pair = Pair()
train(pair, torch.optim.SGD(pair.student.parameters(), lr=0.1), [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""
_PAIR_AFTER = """\
# file: train.py
import torch
import torch.nn.functional as F

class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.student = torch.nn.Linear(4, 3)
        self.teacher = torch.nn.Linear(4, 3)

def train(pair, opt, loader):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        opt.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(pair.student(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(pair.student.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()

pair = Pair()
train(pair, torch.optim.SGD(pair.student.parameters(), lr=0.1), [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""
_CLASS_BEFORE = """\
# file: distil.py
import torch
import torch.nn.functional as F
from apex import amp
from nets import Net

class Distil:
    def __init__(self):
        self.teacher = Net(8)
        self.student = Net(4)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1)
        self.student, self.opt = amp.initialize(self.student, self.opt)

    def learn(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)
        loss = F.mse_loss(self.student(x), wanted)
        self.opt.zero_grad()
        with amp.scale_loss(loss, self.opt) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(self.opt), 1.0)
        self.opt.step()
# file: nets.py
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.low, self.high = torch.nn.Linear(4, width), torch.nn.Linear(width, 2)

    def forward(self, x):
        return self.high(self.low(x))
# file: main.py
import torch
from distil import Distil

distil = Distil()
for _ in range(3):
    distil.learn(torch.randn(5, 4))
"""
_CLASS_AFTER = """\
# file: distil.py
import torch
import torch.nn.functional as F
from nets import Net

class Distil:
    def __init__(self):
        self.teacher = Net(8)
        self.student = Net(4)
        self.opt = torch.optim.SGD(self.student.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def learn(self, x):
        with torch.no_grad():
            with torch.cuda.amp.autocast():
                wanted = self.teacher(x)
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(self.student(x), wanted)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
# file: nets.py
import torch

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.low, self.high = torch.nn.Linear(4, width), torch.nn.Linear(width, 2)

    def forward(self, x):
        return self.high(self.low(x))
# file: main.py
import torch
from distil import Distil

distil = Distil()
for _ in range(3):
    distil.learn(torch.randn(5, 4))
"""
_GAN_BEFORE = """\
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

def clipped(opt):
    torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)

def main():
    gen, disc = torch.nn.Linear(4, 5), torch.nn.Linear(5, 1)
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(disc.parameters(), lr=0.1)
    [gen, disc], [opt_g, opt_d] = amp.initialize([gen, disc], [opt_g, opt_d])
    for real, z in [(torch.randn(6, 5), torch.randn(6, 4))]:
        opt_d.zero_grad()
        d_loss = disc(gen(z).detach()).mean() - disc(real).mean()
        with amp.scale_loss(d_loss, opt_d) as scaled:
            scaled.backward()
        clipped(opt_d)
        opt_d.step()
        opt_g.zero_grad()
        g_loss = -disc(gen(z)).mean()
        with amp.scale_loss(g_loss, opt_g) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt_g), 1.0)
        opt_g.step()

main()
"""
_GAN_AFTER = """\
# file: train.py
import torch
import torch.nn.functional as F

def clipped(opt, scaler):
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_([p for group in opt.param_groups for p in group["params"]], 1.0)

def main():
    gen, disc = torch.nn.Linear(4, 5), torch.nn.Linear(5, 1)
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(disc.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for real, z in [(torch.randn(6, 5), torch.randn(6, 4))]:
        opt_d.zero_grad()
        with torch.cuda.amp.autocast():
            d_loss = disc(gen(z).detach()).mean() - disc(real).mean()
        scaler.scale(d_loss).backward()
        clipped(opt_d, scaler)
        scaler.step(opt_d)
        opt_g.zero_grad()
        with torch.cuda.amp.autocast():
            g_loss = -disc(gen(z)).mean()
        scaler.scale(g_loss).backward()
        scaler.unscale_(opt_g)
        torch.nn.utils.clip_grad_norm_(gen.parameters(), 1.0)
        scaler.step(opt_g)
        scaler.update()

main()
"""

OTHER_NETWORKS = (
    Training(
        "a student is clipped beside its teacher",
        files(_PAIR_BEFORE),
        files(_PAIR_AFTER),
        {
            "the teacher is clipped": (
                (
                    "clip_grad_norm_(pair.student.parameters()",
                    "clip_grad_norm_(pair.teacher.parameters()",
                ),
            )
        },
    ),
    Training(
        "a student is clipped in a class of another file",
        files(_CLASS_BEFORE),
        files(_CLASS_AFTER),
        {
            "the teacher is clipped": (
                ("(self.student.parameters(), 1.0)", "(self.teacher.parameters(), 1.0)"),
            ),
            "one layer is clipped": (
                ("(self.student.parameters(), 1.0)", "(self.student.low.parameters(), 1.0)"),
            ),
        },
    ),
    Training(
        "two networks are clipped, one of them in a helper",
        files(_GAN_BEFORE),
        files(_GAN_AFTER),
        {
            "the other one is clipped before its gradients are unscaled": (
                ("clip_grad_norm_(gen.parameters()", "clip_grad_norm_(disc.parameters()"),
            ),
            "the helper is given the other optimizer": (
                ("clipped(opt_d, scaler)", "clipped(opt_g, scaler)"),
            ),
            "the helper that unscales is called twice": (
                (
                    "        clipped(opt_d, scaler)\n",
                    "        clipped(opt_d, scaler)\n        clipped(opt_d, scaler)\n",
                ),
            ),
        },
    ),
)
