"""A step before the first backward, past the GradScaler, with faults planted into it that send it through."""

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
EARLY = (
    Training(
        "a step before the first backward",
        {"train.py": dedent(_BEFORE)},
        {"train.py": dedent(_AFTER)},
        {name: ((_EARLY, text),) for name, text in _FAULTS.items()},
    ),
)
