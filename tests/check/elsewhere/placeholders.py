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
_IMPORTED_BEFORE = """
# file: clips.py
import torch
from apex import amp

class Clipper:
    def __init__(self, limit):
        self.limit = limit

    def apply(self, optimizer):
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), self.limit)

# file: parts.py
from clips import Clipper

CLIPPER = Clipper(1.0)

# file: train.py
import torch
import torch.nn.functional as F
from apex import amp
from parts import CLIPPER

def main(loader):
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        CLIPPER.apply(optimizer)
        optimizer.step()

main([])
"""
_IMPORTED_AFTER = """
# file: clips.py
import torch

class Clipper:
    def __init__(self, limit):
        self.limit = limit

    def apply(self, optimizer, scaler):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], self.limit)

# file: parts.py
from clips import Clipper

CLIPPER = Clipper(1.0)

# file: train.py
import torch
import torch.nn.functional as F
from parts import CLIPPER

def main(loader):
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        CLIPPER.apply(optimizer, scaler)
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_KEEPS = (
    ("def __init__(self, limit):\n        self.limit = limit", "def __init__(self, limit, scaler):\n        self.limit = limit\n        self.scaler = scaler"),
    ("def apply(self, optimizer, scaler)", "def apply(self, optimizer)"),
    ("        scaler.unscale_(optimizer)", "        self.scaler.unscale_(optimizer)"),
    ("CLIPPER.apply(optimizer, scaler)", "CLIPPER.apply(optimizer)"),
    ("from clips import Clipper\n\nCLIPPER", "import torch\nfrom clips import Clipper\n\nCLIPPER"),
)  # fmt: skip
PLACEHOLDERS = (
    Training(
        "an object that a file makes as it is imported",
        files(_IMPORTED_BEFORE),
        files(_IMPORTED_AFTER),
        {
            "it keeps one that is off": (
                *_KEEPS, ("Clipper(1.0)", "Clipper(1.0, torch.cuda.amp.GradScaler(enabled=False))"),
            ),
            "it keeps one of its own": (
                *_KEEPS, ("Clipper(1.0)", "Clipper(1.0, torch.cuda.amp.GradScaler())"),
            ),
            "it is given one that is off": (
                ("apply(optimizer, scaler)\n", "apply(optimizer, torch.cuda.amp.GradScaler(enabled=False))\n"),
            ),
        },
    ),
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
