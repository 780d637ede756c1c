"""Steps before the first backward, and a GradScaler given on before it is made, with faults planted into them."""

from __future__ import annotations

from textwrap import dedent

from check.trainings.planted import Training

_BEFORE = """
    import torch
    from apex import amp

    class Updater:
        def __init__(self, optimizer):
            self.base = optimizer

        def step(self):
            self.base.step()

    def train(network, updater, loader):
        for x, y in loader:
            updater.base.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(x), y)
            with amp.scale_loss(loss, updater.base) as scaled_loss:
                scaled_loss.backward()
            updater.step()

    def main(loader):
        network = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")
        updater = Updater(optimizer)
        optimizer.step()
        train(network, updater, loader)

    main([])
"""
_AFTER = """
    import torch

    class Updater:
        def __init__(self, optimizer, scaler):
            self.base = optimizer
            self.scaler = scaler

        def step(self):
            self.scaler.step(self.base)
            self.scaler.update()

    def train(network, updater, loader):
        for x, y in loader:
            updater.base.zero_grad()
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.cross_entropy(network(x), y)
            updater.scaler.scale(loss).backward()
            updater.step()

    def main(loader):
        network = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        updater = Updater(optimizer, scaler)
        optimizer.step()
        train(network, updater, loader)

    main([])
"""
_EARLY = "    optimizer.step()\n    train("
_FAULTS = {
    "it goes through what steps later": "    updater.step()\n    train(",
    "it goes through the GradScaler": "    scaler.step(optimizer)\n    scaler.update()\n    train(",
}
_ENGINE_BEFORE = """import torch.nn.functional as F
from apex import amp

def fit(session, loader, stages):
    for x, y in loader:
        session.optimizer.zero_grad()
        loss = F.mse_loss(session.network(x), y)
        with amp.scale_loss(loss, session.optimizer) as scaled_loss:
            scaled_loss.backward()
        session.optimizer.step()
"""
_ENGINE_AFTER = """import torch
import torch.nn.functional as F

def fit(session, loader, stages, scaler):
    for x, y in loader:
        session.optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(session.network(x), y)
        scaler.scale(loss).backward()
        scaler.step(session.optimizer)
        scaler.update()
"""
_TRAIN_BEFORE = """import torch
from apex import amp
from engine import fit

class Session:
    def __init__(self):
        self.network = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

def half(session):
    session.network, session.optimizer = amp.initialize(session.network, session.optimizer, opt_level="O1")

STAGES = [half]

def main(loader):
    session = Session()
    for stage in STAGES:
        stage(session)
    fit(session, loader, STAGES)

main([])
"""
_TRAIN_AFTER = """import torch
from engine import fit

scaler = torch.cuda.amp.GradScaler(enabled=False)

class Session:
    def __init__(self):
        self.network = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)

def half(session):
    global scaler
    scaler = torch.cuda.amp.GradScaler()

STAGES = [half]

def main(loader):
    session = Session()
    for stage in STAGES:
        stage(session)
    fit(session, loader, STAGES, scaler)

main([])
"""
_HOOKED = "    for stage in STAGES:\n        stage(session)\n"
_ROUND = "    for x, y in loader:\n        session.optimizer.zero_grad()"
_PARTS_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp

class Base:
    def __init__(self, network):
        self.network = network
        self.prepare()
        self.engine = self.make_engine()

    def prepare(self):
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.network, self.optimizer = amp.initialize(self.network, self.optimizer, opt_level="O1")

class Engine:
    def learn(self, network, optimizer, x, y):
        loss = F.mse_loss(network(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()

class Experiment(Base):
    def make_engine(self):
        return Engine()

    def fit(self, loader):
        for x, y in loader:
            self.engine.learn(self.network, self.optimizer, x, y)

Experiment(torch.nn.Linear(4, 2)).fit([])
"""
_PARTS_AFTER = """import torch
import torch.nn.functional as F

class Base:
    def __init__(self, network):
        self.network = network
        self.prepare()
        self.engine = self.make_engine()

    def prepare(self):
        self.optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

class Engine:
    def __init__(self, scaler):
        self.scaler = scaler

    def learn(self, network, optimizer, x, y):
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(network(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad()

class Experiment(Base):
    def make_engine(self):
        return Engine(self.scaler)

    def fit(self, loader):
        for x, y in loader:
            self.engine.learn(self.network, self.optimizer, x, y)

Experiment(torch.nn.Linear(4, 2)).fit([])
"""
_PREPARED = "        self.prepare()\n"
_ENGINE = "        self.engine = self.make_engine()\n"
EARLY = (
    Training(
        "a part that a method of the subclass makes",
        {"train.py": _PARTS_BEFORE},
        {"train.py": _PARTS_AFTER},
        {
            "it is made before the scaler": ((_PREPARED + _ENGINE, _ENGINE + _PREPARED),),
            "it is made before and behind": ((_PREPARED, _ENGINE + _PREPARED),),
        },
    ),
    Training(
        "a step before the first backward",
        {"train.py": dedent(_BEFORE)},
        {"train.py": dedent(_AFTER)},
        {name: ((_EARLY, text),) for name, text in _FAULTS.items()},
    ),
    Training(
        "a variable that another file is given",
        {"engine.py": _ENGINE_BEFORE, "train.py": _TRAIN_BEFORE},
        {"engine.py": _ENGINE_AFTER, "train.py": _TRAIN_AFTER},
        {
            "it is given before it is made": (
                (_HOOKED, ""),
                (_ROUND, "    for stage in stages:\n        stage(session)\n" + _ROUND),
            ),
            "the one that is off is given": (
                ("fit(session, loader, STAGES, scaler)", "fit(session, loader, STAGES, kept)"),
                (_HOOKED, "    kept = scaler\n" + _HOOKED),
            ),
        },
    ),
)
