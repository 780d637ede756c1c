"""Properties that give the parameters to a clip: what reads them has unscaled them already."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from torch import nn
from apex import amp


class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.prepare()

    def prepare(self):
        pass

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        self.backward(loss)
        nn.utils.clip_grad_norm_(self.weights, 0.5)
        self.optimizer.step()


class Plain(Learner):
    @property
    def weights(self):
        return self.model.parameters()

    def backward(self, loss):
        loss.backward()


class Mixed(Learner):
    def prepare(self):
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer)

    @property
    def weights(self):
        return amp.master_params(self.optimizer)

    def backward(self, loss):
        with amp.scale_loss(loss, self.optimizer) as scaled:
            scaled.backward()


learner = Mixed(nn.Linear(4, 2))
for x, y in loader:
    learner.learn(x, y)
"""
_AFTER = """import torch
from torch import nn


class Learner:
    scaler = torch.cuda.amp.GradScaler(enabled=False)

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.prepare()

    def prepare(self):
        pass

    def learn(self, x, y):
        self.optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
            loss = nn.functional.mse_loss(self.model(x), y)
        self.backward(loss)
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.weights, 0.5)
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Plain(Learner):
    @property
    def weights(self):
        return self.model.parameters()

    def backward(self, loss):
        loss.backward()


class Mixed(Learner):
    def prepare(self):
        self.scaler = torch.cuda.amp.GradScaler()

    @property
    def weights(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def backward(self, loss):
        self.scaler.scale(loss).backward()


learner = Mixed(nn.Linear(4, 2))
for x, y in loader:
    learner.learn(x, y)
"""
_GIVES = '        return [p for group in self.optimizer.param_groups for p in group["params"]]\n'

UNSCALED_IN_PROPERTIES = (
    Training(
        "parameters in a property of one of two classes",
        {"train.py": _BEFORE},
        {"train.py": _AFTER},
        {
            "the property unscales as well": (
                (_GIVES, f"        self.scaler.unscale_(self.optimizer)\n{_GIVES}"),
            ),
            "nothing unscales": (("        self.scaler.unscale_(self.optimizer)\n", ""),),
        },
        (),
    ),
)
