"""Objects of code out of sight that were given the trainer, when they were made or later: any method of theirs may read gradients."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp
from moments import Moments


class Trainer:
    def __init__(self, net, listeners):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net, self.optimizer = amp.initialize(net, optimizer, opt_level="O1")
{made}

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
{run}
        self.optimizer.step()
"""
_AFTER = """\
import torch
import torch.nn.functional as F
from moments import Moments


class Trainer:
    def __init__(self, net, listeners):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net, self.optimizer = net, optimizer
        self.scaler = torch.cuda.amp.GradScaler()
{made}

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
{run}
        self.scaler.step(self.optimizer)
        self.scaler.update()
"""
_UNSCALED = "        self.scaler.unscale_(self.optimizer)\n"
_STEPPED = "        self.scaler.step(self.optimizer)\n"
_WAYS = {
    "an object made with the trainer": (
        "        self.moments = Moments(self)",
        '        self.moments.reached("backward")',
    ),
    "an object made with the optimizer": (
        "        self.moments = Moments(listeners, optimizer=self.optimizer)",
        '        self.moments.reached("backward")',
    ),
    "objects told of the trainer": (
        "        self.listeners = listeners\n        for listener in self.listeners:\n            listener.bind(self)",
        "        for listener in self.listeners:\n            listener.behind_backward()",
    ),
}
TOLD_OF_TRAINERS = tuple(
    Training(
        f"gradients that {way} may read",
        {"training.py": _BEFORE.format(made=made, run=run)},
        {"training.py": _AFTER.format(made=made, run=run)},
        {
            "they stay scaled": ((_UNSCALED, ""),),
            "they are unscaled behind it": ((_UNSCALED, ""), (_STEPPED, _UNSCALED + _STEPPED)),
        },
    )
    for way, (made, run) in _WAYS.items()
)
