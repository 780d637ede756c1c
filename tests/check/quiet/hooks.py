"""Hooks that clip or unscale, called once for each step: called twice they do so twice."""

from __future__ import annotations

from check.trainings.planted import Training, files

_LIST_BEFORE = """\
# file: hooks.py
import torch
from apex import amp

class Clip:
    def __init__(self, limit):
        self.limit = limit

    def after_backward(self, trainer):
        torch.nn.utils.clip_grad_norm_(amp.master_params(trainer.opt), self.limit)
# file: trainer.py
import torch
from apex import amp

class Trainer:
    def __init__(self, net, opt, hooks):
        self.hooks = hooks
        self.net, self.opt = amp.initialize(net, opt, opt_level="O1")

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def fit(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            self.call("after_backward")
            self.opt.step()

# file: main.py
import torch
from hooks import Clip
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), [Clip(1.0)])
trainer.fit([(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""
_LIST_AFTER = """\
# file: hooks.py
import torch

class Clip:
    def __init__(self, limit):
        self.limit = limit

    def after_backward(self, trainer):
        torch.nn.utils.clip_grad_norm_([p for group in trainer.opt.param_groups for p in group["params"]], self.limit)
# file: trainer.py
import torch

class Trainer:
    def __init__(self, net, opt, hooks):
        self.hooks = hooks
        self.net, self.opt = net, opt
        self.scaler = torch.cuda.amp.GradScaler()

    def call(self, name):
        for hook in self.hooks:
            getattr(hook, name)(self)

    def fit(self, loader):
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            self.call("after_backward")
            self.scaler.step(self.opt)
            self.scaler.update()

# file: main.py
import torch
from hooks import Clip
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), [Clip(1.0)])
trainer.fit([(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""
_METHOD_BEFORE = """\
# file: engine.py
import torch
from apex import amp

def clip(opt, limit):
    if limit:
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt), limit)

class Engine:
    def __init__(self, net, opt, limit):
        self.net, self.opt = amp.initialize(net, opt)
        self.limit = limit

    def after_backward(self):
        clip(self.opt, self.limit)

    def learn(self, x, y):
        self.opt.zero_grad()
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        with amp.scale_loss(loss, self.opt) as scaled:
            scaled.backward()
        self.after_backward()
        self.opt.step()
# file: main.py
import torch
from engine import Engine

net = torch.nn.Linear(4, 3)
engine = Engine(net, torch.optim.SGD(net.parameters(), lr=0.1), 1.0)
for _ in range(3):
    engine.learn(torch.randn(6, 4), torch.randn(6, 3))
"""
_METHOD_AFTER = """\
# file: engine.py
import torch

def clip(opt, limit, scaler):
    if limit:
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_([p for g in opt.param_groups for p in g["params"]], limit)

class Engine:
    def __init__(self, net, opt, limit):
        self.net, self.opt = net, opt
        self.scaler = torch.cuda.amp.GradScaler()
        self.limit = limit

    def after_backward(self):
        clip(self.opt, self.limit, self.scaler)

    def learn(self, x, y):
        self.opt.zero_grad()
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.after_backward()
        self.scaler.step(self.opt)
        self.scaler.update()
# file: main.py
import torch
from engine import Engine

net = torch.nn.Linear(4, 3)
engine = Engine(net, torch.optim.SGD(net.parameters(), lr=0.1), 1.0)
for _ in range(3):
    engine.learn(torch.randn(6, 4), torch.randn(6, 3))
"""

HOOKS = (
    Training(
        "hooks of a list clip",
        files(_LIST_BEFORE),
        files(_LIST_AFTER),
        {
            "they are called twice": (
                (
                    '            self.call("after_backward")\n',
                    '            self.call("after_backward")\n            self.call("after_backward")\n',
                ),
            ),
            "there are two": (("[Clip(1.0)]", "[Clip(1.0), Clip(1.0)]"),),
            "the loop goes over them twice": (
                (
                    "        for hook in self.hooks:",
                    "        for hook in [*self.hooks, *self.hooks]:",
                ),
            ),
            "a hook unscales what is unscaled": (
                (
                    "        torch.nn.utils.clip_grad_norm_",
                    "        trainer.scaler.unscale_(trainer.opt)\n        torch.nn.utils.clip_grad_norm_",
                ),
            ),
            "a hook clips another network": (
                (
                    '[p for group in trainer.opt.param_groups for p in group["params"]]',
                    "torch.nn.Linear(4, 4).parameters()",
                ),
            ),
        },
    ),
    Training(
        "a method unscales and clips by a function of its file",
        files(_METHOD_BEFORE),
        files(_METHOD_AFTER),
        {
            "it is called twice": (
                (
                    "        self.after_backward()\n",
                    "        self.after_backward()\n        self.after_backward()\n",
                ),
            ),
            "it calls the function twice": (
                (
                    "        clip(self.opt, self.limit, self.scaler)\n",
                    "        clip(self.opt, self.limit, self.scaler)\n        clip(self.opt, self.limit, self.scaler)\n",
                ),
            ),
        },
    ),
)
