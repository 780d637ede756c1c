"""A method goes on with an object of the class that it began with, however many classes inherit it."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_BASE = """
import torch


class Runner:
    def __init__(self, mode, args, loader):
        self.args, self.loader = args, loader
        self.net = torch.nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.extra = None
        if args.extra:
            self.extra = torch.cuda.amp.GradScaler()

    def start(self):
        for epoch in range(self.args.epochs):
            self.train(epoch)
            self.note(epoch)

    def note(self, epoch):
        print(epoch)

    def loss(self, x, y):
        return (self.net(x) - y).abs().mean()

    def train(self, epoch):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            self.scaler.scale(self.loss(x, y)).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


class Odd(Runner):
    def train(self, epoch):
        for x, y in self.loader:
            self.scaler.scale(self.loss(x, y)).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
"""
_OTHER = """

class Runner{0}(Runner):
    def loss(self, x, y):
        return (self.net(x) - y).square().mean()

    def note(self, epoch):
        print({0}, epoch)
"""
_MAIN = """

RUNNERS = {{{names}}}


def main(args, loader):
    for task in range(3):
        runner = RUNNERS[args.kind]("train", args, loader)
        runner.start()
"""
_BOTH = "\n    def start(self):\n        Runner.train(self, 0)\n        self.train(1)\n"


def _found(others: int, odd: str = "") -> list[Breach]:
    names = ["Runner", "Odd", *(f"Runner{n}" for n in range(others))]
    text = _BASE + odd + "".join(_OTHER.format(n) for n in range(others))
    text += _MAIN.format(names=", ".join(f'"{name}": {name}' for name in names))
    return [fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))]


@pytest.mark.parametrize("others", [0, 6, 24])
def test_no_round_is_one_of_another_class(others: int) -> None:
    """What clears gradients in front of each backward and what clears them behind each step are never mixed."""
    assert Breach.MIXED not in _found(others)


@pytest.mark.parametrize("others", [0, 6, 24])
def test_one_object_that_runs_both_is_found(others: int) -> None:
    """Here the gradients of the first are there when the second adds to them."""
    assert Breach.MIXED in _found(others, _BOTH)
