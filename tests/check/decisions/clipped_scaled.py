"""Clips on micro-batches that do not step: limit and norm go with the loss scale, as the gradients do."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def train(model, loader, rounds):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for number, (x, y) in enumerate(loader, 1):
        loss = F.cross_entropy(model(x), y) / rounds
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        print(number, loss.item(), norm)
        if number % rounds == 0:
            optimizer.step()
            optimizer.zero_grad()
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def train(model, loader, rounds):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for number, (x, y) in enumerate(loader, 1):
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y) / rounds
        scaler.scale(loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale()) / scaler.get_scale()
        print(number, loss.item(), norm)
        if number % rounds == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""
_CLIP = "        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale()) / scaler.get_scale()\n"
_STEP = "            scaler.step(optimizer)\n"
_UPDATE = "            scaler.update()\n"
_CLIP_AND_TELL = _CLIP + "        print(number, loss.item(), norm)\n"


def _deeper(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


_HELPER_BEFORE = """
# file: steps.py
import torch


def held(model, limit):
    return float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=limit, norm_type=2))
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp
from steps import held


class Training:
    def __init__(self, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer = amp.initialize(model, optimizer, opt_level="O1")
        self.norms = []

    def run(self, loader, rounds):
        for number, (x, y) in enumerate(loader, 1):
            loss = F.cross_entropy(self.model(x), y)
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.norms.append((number, held(self.model, 2.0)))
            if number % rounds == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
"""
_HELPER_AFTER = """
# file: steps.py
import torch


def held(model, limit, scaler):
    return float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=limit * scaler.get_scale(), norm_type=2) / scaler.get_scale())
# file: train.py
import torch
import torch.nn.functional as F
from steps import held


class Training:
    def __init__(self, model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.cuda.amp.GradScaler()
        self.norms = []

    def run(self, loader, rounds):
        for number, (x, y) in enumerate(loader, 1):
            with torch.cuda.amp.autocast():
                loss = F.cross_entropy(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.norms.append((number, held(self.model, 2.0, self.scaler)))
            if number % rounds == 0:
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad()
"""

CLIPPED_SCALED = (
    Training(
        "a clip on every micro-batch is scaled with the gradients",
        files(_BEFORE),
        files(_AFTER),
        {
            "its limit is not scaled": (("1.0 * scaler.get_scale()", "1.0"),),
            "its norm is not divided": ((") / scaler.get_scale()", ")"),),
            "only the norm is divided": (
                (
                    "1.0 * scaler.get_scale()) / scaler.get_scale()",
                    "1.0) / scaler.get_scale()",
                ),
            ),
            "another limit": (("1.0 * scaler", "2.0 * scaler"),),
            "gradients are true there": ((_CLIP, "        scaler.unscale_(optimizer)\n" + _CLIP),),
            "true and scaled at the step alone": (
                (_CLIP_AND_TELL, ""),
                (_STEP, _deeper("        scaler.unscale_(optimizer)\n" + _CLIP_AND_TELL) + _STEP),
            ),
            "behind another scale": (
                (_CLIP_AND_TELL, ""),
                (_UPDATE, ""),
                (
                    "        if number % rounds == 0:\n",
                    "        scaler.unscale_(optimizer)\n        scaler.update()\n"
                    + _CLIP_AND_TELL
                    + "        if number % rounds == 0:\n",
                ),
            ),
            "a clip of values hides overflows": (
                (
                    "clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale()) / scaler.get_scale()",
                    "clip_grad_value_(model.parameters(), 1.0 * scaler.get_scale())",
                ),
            ),
        },
    ),
    Training(
        "a helper clips every micro-batch",
        files(_HELPER_BEFORE),
        files(_HELPER_AFTER),
        {
            "its limit is not scaled": (("limit * scaler.get_scale()", "limit"),),
            "its norm is not divided": ((") / scaler.get_scale())", "))"),),
            "it is called on true gradients": (
                (
                    "            self.norms.append(",
                    "            self.scaler.unscale_(self.optimizer)\n            self.norms.append(",
                ),
            ),
        },
    ),
)

_LEARNER_BEFORE = """
# file: train.py
import torch
import torch.nn as nn
from apex import amp


class Learner:
    def __init__(self, width):
        self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")


def learn(learner, beside, x):
    loss = (learner.net(x).float() - x.sum(1, keepdim=True)).pow(2).mean()
    loss = loss + 0.1 * beside.net(x).float().pow(2).mean()
    learner.opt.zero_grad()
    with amp.scale_loss(loss, learner.opt) as s:
        s.backward()
    nn.utils.clip_grad_norm_(amp.master_params(learner.opt), 0.05)
    learner.opt.step()


torch.manual_seed(0)
one, two = Learner(8), Learner(12)
for step in range(24):
    learn(one, two, torch.randn(8, 4))
print(sum(p.double().sum().item() for m in (one, two) for p in m.net.parameters()))
"""
_LEARNER_AFTER = """
# file: train.py
import torch
import torch.nn as nn


class Learner:
    def __init__(self, width):
        self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.scaler = torch.cuda.amp.GradScaler()


def learn(learner, beside, x):
    with torch.cuda.amp.autocast():
        loss = (learner.net(x).float() - x.sum(1, keepdim=True)).pow(2).mean()
        loss = loss + 0.1 * beside.net(x).float().pow(2).mean()
    learner.opt.zero_grad()
    learner.scaler.scale(loss).backward()
    learner.scaler.unscale_(learner.opt)
    nn.utils.clip_grad_norm_(learner.net.parameters(), 0.05)
    learner.scaler.step(learner.opt)
    learner.scaler.update()


torch.manual_seed(0)
one, two = Learner(8), Learner(12)
for step in range(24):
    learn(one, two, torch.randn(8, 4))
print(sum(p.double().sum().item() for m in (one, two) for p in m.net.parameters()))
"""
CLIPPED_SCALED = (
    *CLIPPED_SCALED,
    Training(
        "a learner beside another one",
        files(_LEARNER_BEFORE),
        files(_LEARNER_AFTER),
        {"the other one is clipped": (("(learner.net.parameters()", "(beside.net.parameters()"),)},
    ),
)
