"""A loss scale that stays belongs to one of several initializes, and layers thaw in the middle of a training."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: learner.py
import torch
import torch.nn.functional as F
from apex import amp


class Learner:
    def __init__(self, options):
        self.options = options
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def prepare(self):
        if self.options["fixed"]:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer, loss_scale=64.0)
        else:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer)

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.optimizer.step()


def main(options, batches):
    learner = Learner(options)
    learner.prepare()
    for x, y in batches:
        learner.learn(x, y)
"""
_AFTER = """
# file: learner.py
import torch
import torch.nn.functional as F


class Learner:
    def __init__(self, options):
        self.options = options
        self.net = torch.nn.Linear(4, 2).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def prepare(self):
        if self.options["fixed"]:
            self.scaler = torch.cuda.amp.GradScaler(
                init_scale=64.0, growth_interval=2**31 - 1, backoff_factor=1 - 2**-30
            )
        else:
            self.scaler = torch.cuda.amp.GradScaler()

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()


def main(options, batches):
    learner = Learner(options)
    learner.prepare()
    for x, y in batches:
        learner.learn(x, y)
"""
_STAYS = """self.scaler = torch.cuda.amp.GradScaler(
                init_scale=64.0, growth_interval=2**31 - 1, backoff_factor=1 - 2**-30
            )"""
_MOVES = "self.scaler = torch.cuda.amp.GradScaler()\n"
_THAW_BEFORE = """
# file: thaw.py
import torch
import torch.nn.functional as F
from apex import amp


def fit(net, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()


def main(net, batches):
    optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for i, (x, y) in enumerate(batches):
        if i == 100:
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        fit(net, optimizer, x, y)
"""
_THAW_AFTER = """
# file: thaw.py
import torch
import torch.nn.functional as F


def fit(net, optimizer, x, y, scaler):
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def main(net, batches):
    optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for i, (x, y) in enumerate(batches):
        if i == 100:
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            scaler = torch.cuda.amp.GradScaler()
        fit(net, optimizer, x, y, scaler)
"""

_BOUNDED_BEFORE = files(
    """
# file: learner.py
import torch
import torch.nn.functional as F
from apex import amp


def main(batches):
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, loss_scale=512.0, min_loss_scale=8.0, max_loss_scale=64.0)
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
)
_BOUNDED_AFTER = files(
    """
# file: learner.py
import torch
import torch.nn.functional as F


def main(batches):
    net = torch.nn.Linear(4, 2).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(init_scale=512.0)
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update(512.0)
"""
)
_UPDATED = "scaler.update(512.0)\n"
STATIC_ARMS = (
    Training(
        "a static loss scale beside bounds",
        _BOUNDED_BEFORE,
        _BOUNDED_AFTER,
        {
            "the scale comes down to the upper bound": [
                (
                    _UPDATED,
                    f"{_UPDATED}        if scaler.get_scale() > 64.0:\n            scaler.update(64.0)\n",
                )
            ],
            "the scale starts at the upper bound": [
                ("init_scale=512.0", "init_scale=64.0"),
                (_UPDATED, "scaler.update(64.0)\n"),
            ],
            "the scale moves": [(_UPDATED, "scaler.update()\n")],
        },
    ),
    Training(
        "a scale that stays in one arm",
        files(_BEFORE),
        files(_AFTER),
        {
            "the scale stays in the other arm": (
                (_STAYS + "\n", "HERE\n"),
                (_MOVES, _STAYS + "\n"),
                ("HERE\n", _MOVES),
            ),
            "the scale stays in both arms": ((_MOVES, _STAYS + "\n"),),
            "the scale moves in both arms": ((_STAYS + "\n", _MOVES),),
            "the scale grows": (("growth_interval=2**31 - 1, backoff_factor=1 - 2**-30", ""),),
        },
    ),
    Training(
        "layers thaw",
        files(_THAW_BEFORE),
        files(_THAW_AFTER),
        {
            "the scale goes on where it began anew": (
                ("            scaler = torch.cuda.amp.GradScaler()\n", ""),
            ),
        },
    ),
)
