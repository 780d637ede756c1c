"""A method turns AMP on where several things hold, and where it did not do so before."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: trainer.py
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, fp16, steps):
        self.fp16 = fp16
        self.steps = steps
        self.begun = False
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def load(self, state):
        self.net.load_state_dict(state)
        self.begun = False
        self.begin()

    def begin(self):
        if self.fp16 and self.steps > 0:
            if not self.begun:
                self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")
                self.begun = True

    def train(self, batches):
        self.begin()
        for x, y in batches:
            loss = F.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            if self.fp16:
                with amp.scale_loss(loss, self.optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            self.optimizer.step()
# file: run.py
import sys
import torch
from trainer import Trainer

Trainer("--half" in sys.argv, 9).train([(torch.randn(3, 4), torch.randint(2, (3,)))])
"""
_AFTER = """
# file: trainer.py
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, fp16, steps):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.fp16 = fp16
        self.steps = steps
        self.begun = False
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def load(self, state):
        self.net.load_state_dict(state)
        self.begun = False
        self.begin()

    def begin(self):
        if self.fp16 and self.steps > 0:
            if not self.begun:
                self.scaler = torch.cuda.amp.GradScaler()
                self.begun = True

    def train(self, batches):
        self.begin()
        for x, y in batches:
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
# file: run.py
import sys
import torch
from trainer import Trainer

Trainer("--half" in sys.argv, 9).train([(torch.randn(3, 4), torch.randint(2, (3,)))])
"""
DONE = (
    Training(
        "a set-up that asks whether it ran before, under two conditions",
        files(_BEFORE),
        files(_AFTER),
        {
            "on without the first condition": (
                ("if self.fp16 and self.steps > 0:\n", "if self.steps > 0:\n"),
            ),
            "on from the constructor": (("GradScaler(enabled=False)", "GradScaler()"),),
            "never on": (("self.scaler = torch.cuda.amp.GradScaler()", "pass"),),
            "forwards uncast": (("enabled=self.scaler.is_enabled()", "enabled=False"),),
        },
    ),
)

_ASKING_BEFORE = """
# file: train.py
import sys
import torch
import torch.nn.functional as F


class Runtime:
    def __init__(self, half):
        self.half = half
        self.amp = None
        if self.half:
            from apex import amp

            self.amp = amp

    @property
    def mixed(self):
        return self.amp is not None

    def prepare(self, net, optimizer):
        if self.mixed:
            net, optimizer = self.amp.initialize(net, optimizer, opt_level="O1")
        return net, optimizer

    def learn(self, net, optimizer, x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        if self.mixed:
            with self.amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        optimizer.step()


runtime = Runtime("--half" in sys.argv)
net = torch.nn.Linear(4, 2).cuda()
net, optimizer = runtime.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(9):
    runtime.learn(net, optimizer, torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())
"""
_ASKING_AFTER = """
# file: train.py
import sys
import torch
import torch.nn.functional as F


class Runtime:
    def __init__(self, half):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.half = half

    @property
    def mixed(self):
        return self.scaler.is_enabled()

    def prepare(self, net, optimizer):
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)
        return net, optimizer

    def learn(self, net, optimizer, x, y):
        with torch.cuda.amp.autocast(enabled=self.mixed):
            loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()


runtime = Runtime("--half" in sys.argv)
net = torch.nn.Linear(4, 2).cuda()
net, optimizer = runtime.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(9):
    runtime.learn(net, optimizer, torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())
"""
DONE = (
    *DONE,
    Training(
        "a set-up that asks whether amp is there",
        files(_ASKING_BEFORE),
        files(_ASKING_AFTER),
        {
            "made by what asks the one that is made": (
                ("GradScaler(enabled=self.half)", "GradScaler(enabled=self.mixed)"),
            ),
            "made by asking the one before": (
                ("GradScaler(enabled=self.half)", "GradScaler(enabled=self.scaler.is_enabled())"),
            ),
        },
    ),
)

_LOCAL_BEFORE = """
# file: runner.py
import torch
import torch.nn.functional as F
from apex import amp


class Runner:
    def __init__(self, given):
        self.cfg = given
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.cfg["lr"])
        if self.cfg["half"]:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")

    def train(self, batches):
        cfg, optimizer = self.cfg, self.optimizer
        for x, y in batches:
            loss = F.cross_entropy(self.net(x), y)
            optimizer.zero_grad()
            if cfg["half"]:
                with amp.scale_loss(loss, optimizer) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            optimizer.step()
"""
_LOCAL_AFTER = """
# file: runner.py
import torch
import torch.nn.functional as F


class Runner:
    def __init__(self, given):
        self.cfg = given
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.cfg["lr"])
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.cfg["half"])

    def train(self, batches):
        cfg, optimizer = self.cfg, self.optimizer
        for x, y in batches:
            with torch.cuda.amp.autocast(enabled=cfg["half"]):
                loss = F.cross_entropy(self.net(x), y)
            optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(optimizer)
            self.scaler.update()
"""
DONE = (
    *DONE,
    Training(
        "a local name for what holds the flag",
        files(_LOCAL_BEFORE),
        files(_LOCAL_AFTER),
        {"forwards uncast": (('enabled=cfg["half"]', "enabled=False"),)},
    ),
)
