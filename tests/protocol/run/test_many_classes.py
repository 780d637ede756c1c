"""Beyond some number of classes a call goes by the methods that it may run, not by each class."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.code.program import program_of
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.solve import Run
from amp_migrate.protocol.scaler import ScalerMachine

_HEAD = """
import torch


class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def fit(self):
        for x in self.loader:
            self.begin()
            self.scaler.scale(self.loss(x)).backward()
            self.scaler.step(self.optimizer)
            self.end()

    def begin(self):
        self.optimizer.zero_grad()

    def loss(self, x):
        return self.net(x).mean()

    def end(self):
        self.scaler.update()
"""
_CLASS = """

class Trainer{0}(Trainer):
    def loss(self, x):
        return self.net(x).mean() * {0}
"""
_FORGETFUL = """

class Forgetful(Trainer):
    def end(self):
        print(1)
"""
_TAIL = """

KINDS = {{{}}}
KINDS[input()](torch.nn.Linear(4, 1), [torch.randn(3, 4)]).fit()
"""


def _text(number: int, more: str = "") -> str:
    names = [f"Trainer{i}" for i in range(number)] + ["Forgetful"] * bool(more)
    made = ", ".join(f'"{name}": {name}' for name in names)
    return _HEAD + "".join(map(_CLASS.format, range(number))) + more + _TAIL.format(made)


def _begun(number: int) -> int:
    """Return how many functions with what is known there a run begins."""
    program = program_of(build({"train.py": Tree("train.py", _text(number))}))
    machine: Machine = ScalerMachine(program.training.objects.scalers[0].number)
    run = Run(program, machine, Memory(program), program.span)
    run.breached()
    return len(run.summaries)


def test_many_classes_are_told_together() -> None:
    """What a run begins no longer grows with them."""
    few, some, many = _begun(8), _begun(24), _begun(48)
    assert few < some
    assert many < some


@pytest.mark.parametrize("number", [3, 48])
def test_what_one_of_them_leaves_out_is_seen(number: int) -> None:
    """However many others there are."""
    found = faults(build({"train.py": Tree("train.py", _text(number, _FORGETFUL))}))
    assert Breach.STEPPED_TWICE in {fault.breach for fault in found}
    assert not faults(build({"train.py": Tree("train.py", _text(number))}))
