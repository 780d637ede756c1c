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
