"""Callbacks that are looked up by a name, and held before they run: what they read of gradients must not be scaled."""

from __future__ import annotations

from check.trainings.planted import Training, files

_HEAD = """
    # file: fit.py
    import functools

    import torch
    import torch.nn.functional as F
    {apex}
    class Limit:
        def __init__(self, net):
            self.net = net

        def ready(self):
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)

    class Count:
        def done(self):
            self.number = 1

    def tell(hooks, moment):
        {tell}

    net = torch.nn.Linear(4, 2).cuda()
    hooks = [Limit(net), Count()]
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_BEFORE = """
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        tell(hooks, {ready})
        optimizer.step()
        tell(hooks, {done})
"""
_AFTER = """
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        tell(hooks, {ready})
        scaler.step(optimizer)
        scaler.update()
        tell(hooks, {done})
"""
_UNSCALED = "    scaler.unscale_(optimizer)\n"
_FAULTS = {"nothing unscales": ((_UNSCALED, ""),)}


def _training(name: str, tell: str, ready: str = '"ready"', done: str = '"done"') -> Training:
    indented = "\n        ".join(tell.splitlines())
    said = {"ready": ready, "done": done}
    before = _HEAD.format(apex="from apex import amp\n", tell=indented) + _BEFORE.format(**said)
    after = _HEAD.format(apex="", tell=indented) + _AFTER.format(**said)
    return Training(name, files(before), files(after), _FAULTS)


_HELD = """for hook in hooks:
    act = getattr(hook, moment, None)
    if act:
        act()"""
LOOKED_UP = (
    _training("a callback that a name holds", _HELD),
    _training("a callback of a moment out of sight", _HELD, "argv[0]", "argv[1]"),
    _training(
        "callbacks out of a generator",
        "for act in filter(None, (getattr(h, moment, None) for h in hooks)):\n    act()",
    ),
    _training("callbacks that map runs", "list(map(lambda h: getattr(h, moment)(), hooks))"),
    _training(
        "a partial object of a callback",
        "for hook in hooks:\n    functools.partial(getattr(hook, moment))()",
    ),
    _training(
        "callbacks that a function inside finds",
        "def find(hook):\n    return getattr(hook, moment)\n\nfor hook in hooks:\n    find(hook)()",
    ),
    _training(
        "a lookup by the method of objects",
        "for hook in hooks:\n    hook.__getattribute__(moment)()",
    ),
)

_BOUND_BEFORE = """
# file: train.py
from functools import partial

import torch
import torch.nn.functional as F
from apex import amp


def bound(*args, **kwargs):
    return partial(*args, **kwargs)


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    scaling = bound(amp.scale_loss, optimizers=optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        with scaling(loss) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_BOUND_AFTER = """
# file: train.py
from functools import partial

import torch
import torch.nn.functional as F


def bound(*args, **kwargs):
    return partial(*args, **kwargs)


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    scaling = bound(FIRST, optimizers=optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        with scaling(loss) as scaled_loss:
            scaler.scale(scaled_loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
BOUND_TO_A_SCALER = tuple(
    Training(
        f"what a helper binds to the scaler, {how}",
        files(_BOUND_BEFORE),
        files(_BOUND_AFTER.replace("FIRST", first)),
        {},
        (("AMP206", "train.py", 20),),
    )
    for how, first in (("first of all", "scaler"), ("by a name", "func=scaler"))
)
