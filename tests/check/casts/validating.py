"""Evaluations of what training has initialized: by a function that initializes too, and by code out of sight."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import sys
import torch
import torch.nn as nn
from apex import amp

def infer(model, x, engine="torch", validates=False):
    if engine == "torch":
        if not validates:
            model = amp.initialize(model, None, opt_level="O1")
        model.eval()
    with torch.no_grad():
        return model(x)

def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        infer(model, x, validates=True)

def main(batches):
    if sys.argv[1] == "train":
        train(nn.Linear(4, 2), batches)
    else:
        infer(nn.Linear(4, 2), batches[0], sys.argv[2])

main([])
"""
_AFTER = """import sys
import torch
import torch.nn as nn

def infer(model, x, engine="torch", validates=False):
    if engine == "torch":
        model.eval()
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=validates or engine == "torch"):
        return model(x)

def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        infer(model, x, validates=True)

def main(batches):
    if sys.argv[1] == "train":
        train(nn.Linear(4, 2), batches)
    else:
        infer(nn.Linear(4, 2), batches[0], sys.argv[2])

main([])
"""
_SEEN = """import torch.nn.functional as F
from inspection import Judge, inference_on_dataset
import torch
from apex import amp

class Trainer:
    def __init__(self, experiment, batches):
        self.experiment, self.batches = experiment, batches
        net = experiment.network()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net, self.optimizer = amp.initialize(net, self.optimizer, opt_level="O1")
        self.judge = Judge(self.net)

    def train(self, judge):
        for x, y in self.batches:
            loss = F.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        kept = self.net
        print(inference_on_dataset(kept, self.batches))
        print(judge.test(self.batches, net=kept))
        print(self.judge.evaluate())
        return self.experiment.eval(kept, self.batches)
"""
_UNSEEN = """import torch.nn.functional as F
from inspection import Judge, inference_on_dataset
import torch

class Trainer:
    def __init__(self, experiment, batches):
        self.experiment, self.batches = experiment, batches
        net = experiment.network()
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.net = net
        self.scaler = torch.cuda.amp.GradScaler()
        self.judge = Judge(self.net)

    def train(self, judge):
        for x, y in self.batches:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
        kept = self.net
        with torch.cuda.amp.autocast():
            print(inference_on_dataset(kept, self.batches))
        with torch.cuda.amp.autocast():
            print(judge.test(self.batches, net=kept))
        with torch.cuda.amp.autocast():
            print(self.judge.evaluate())
        with torch.cuda.amp.autocast():
            return self.experiment.eval(kept, self.batches)
"""
_HOOKED = """import sys
import torch
import torch.nn.functional as F
from apex import amp

def precise(session):
    session.network, session.optimizer = amp.initialize(session.network, session.optimizer)

def plain(session):
    print("plain")

HOOKS = {"half": [precise], "none": [plain]}

class Session:
    def __init__(self, network, hooks):
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for hook in hooks:
            hook(self)

    def error(self, x, y):
        return F.mse_loss(self.network(x), y)

    @torch.no_grad()
    def examine(self, batches):
        return sum(self.error(x, y).item() for x, y in batches)

    def learn(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            loss = self.error(x, y)
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
        print(self.examine(batches))

Session(torch.nn.Linear(4, 2), HOOKS[sys.argv[1]]).learn([])
"""
_UNHOOKED = """import sys
import torch
import torch.nn.functional as F

scaler = torch.cuda.amp.GradScaler(enabled=False)

def precise(session):
    global scaler
    scaler = torch.cuda.amp.GradScaler()

def plain(session):
    print("plain")

HOOKS = {"half": [precise], "none": [plain]}

class Session:
    def __init__(self, network, hooks):
        self.network = network
        self.optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        for hook in hooks:
            hook(self)

    def error(self, x, y):
        return F.mse_loss(self.network(x), y)

    @torch.no_grad()
    def examine(self, batches):
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            return sum(self.error(x, y).item() for x, y in batches)

    def learn(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
                loss = self.error(x, y)
            scaler.scale(loss).backward()
            scaler.step(self.optimizer)
            scaler.update()
        print(self.examine(batches))

Session(torch.nn.Linear(4, 2), HOOKS[sys.argv[1]]).learn([])
"""
_ASKED = "        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            "
_ASKED_BY_STEP = (
    "            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n                loss"
)
_CAST = """        with torch.cuda.amp.autocast():
            {0}
"""
_FLAT = """        {0}
"""
_OUT_OF_SIGHT = {
    "a function of a library": "print(inference_on_dataset(kept, self.batches))",
    "an object that is handed in": "print(judge.test(self.batches, net=kept))",
    "what keeps the network": "print(self.judge.evaluate())",
    "an attribute": "return self.experiment.eval(kept, self.batches)",
}
_BOTH, _OWN = 'validates or engine == "torch"', 'engine == "torch" and not validates'
VALIDATING = (
    Training(
        "inference that validates what is initialized",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"only its own initialize counts": ((_BOTH, _OWN),)},
    ),
    Training(
        "evaluations out of sight",
        {"main.py": _SEEN},
        {"main.py": _UNSEEN},
        {
            f"{name} is not cast": ((_CAST.format(text), _FLAT.format(text)),)
            for name, text in _OUT_OF_SIGHT.items()
        },
    ),
    Training(
        "hooks of which one may initialize",
        {"main.py": _HOOKED},
        {"main.py": _UNHOOKED},
        {
            "what evaluates is not cast": ((f"{_ASKED}return", "        return"),),
            "what trains is not cast": ((_ASKED_BY_STEP, "            loss"),),
        },
    ),
)
