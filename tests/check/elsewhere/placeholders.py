"""Objects that are made with a GradScaler which is off, before the one that is on takes its place."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.body(x)


class Training:
    def __init__(self, rate):
        self.rate = rate

    def prepare(self):
        self.net = Net().cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.rate)

    def begin(self):
        self.net, self.optimizer = amp.initialize(self.net, self.optimizer, opt_level="O1")

    def run(self, batches):
        self.prepare()
        self.begin()
        for x, y in batches:
            loss = F.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
            self.optimizer.step()


Training(0.1).run([(torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())])
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.body(x)


class Training:
    def __init__(self, rate):
        self.scaler = torch.cuda.amp.GradScaler(enabled=False)
        self.rate = rate

    def prepare(self):
        self.net = Net().cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.rate)

    def begin(self):
        self.scaler = torch.cuda.amp.GradScaler()

    def run(self, batches):
        self.prepare()
        self.begin()
        for x, y in batches:
            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.cross_entropy(self.net(x), y)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


Training(0.1).run([(torch.randn(3, 4).cuda(), torch.randint(2, (3,)).cuda())])
"""
PLACEHOLDERS = (
    Training(
        "an attribute that gets its GradScaler late",
        files(_BEFORE),
        files(_AFTER),
        {
            "the network keeps the one that is off": (
                ("def __init__(self):\n        super", "def __init__(self, scaler):\n        self.scaler = scaler\n        super"),
                ("Net().cuda()", "Net(self.scaler).cuda()"),
                ("self.scaler.is_enabled()", "self.net.scaler.is_enabled()"),
                ("self.scaler.scale(loss)", "self.net.scaler.scale(loss)"),
                ("self.scaler.step(", "self.net.scaler.step("),
                ("self.scaler.update()", "self.net.scaler.update()"),
            ),
        },
    ),
)  # fmt: skip
