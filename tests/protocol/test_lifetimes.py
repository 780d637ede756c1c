"""From where to where optimizers are there, as the names and calls of a program tell."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.code.lifetimes import Lifetimes
from amp_migrate.protocol.code.program import program_of
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach

_PROGRAM = """\
import functools

import torch
import torch.nn.functional as F
from trainers import Runner

KEPT = []


class Trainer:
    def __init__(self, net):
        self.net = net

    def train(self, batches):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        {more}
        for x, y in batches:
            F.mse_loss(self.net(x), y).backward()
            self.step(optimizer)

    def step(self, optimizer):
        optimizer.step()
        optimizer.zero_grad()


def main():
    trainer = Trainer(torch.nn.Linear(4, 2))
    trainer.train([])


main()
"""
_GONE = {
    "nothing more": "pass",
    "a scheduler": "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)",
    "a local list": "several = [optimizer]",
    "its learning rate": "self.rate = optimizer.param_groups[0]['lr']",
    "its groups": "groups = optimizer.param_groups",
    "its state": "torch.save(optimizer.state_dict(), 'last.pt')",
}
_KEPT = {
    "an attribute": "self.optimizer = optimizer",
    "an item of an attribute": "self.known = {}; self.known['sgd'] = optimizer",
    "a list of the file": "KEPT.append(optimizer)",
    "a variable of the file": "global LAST; LAST = optimizer",
    "a closure": "self.closure = lambda: optimizer.step()",
    "code out of sight": "Runner(optimizer)",
    "an attribute by name": "setattr(self, 'last', optimizer)",
    "a method of it": "self.advance = optimizer.step",
    "a method of it in a list": "KEPT.append(optimizer.step)",
    "a dictionary of the object": "self.__dict__.update(last=optimizer)",
    "a partial": "self.advance = functools.partial(self.step, optimizer)",
}


def _lifetimes(text: str) -> tuple[Lifetimes, Programs]:
    project = build({"train.py": Tree("train.py", text)})
    program = program_of(project)
    return Lifetimes(program), Programs(program)


def _homes(text: str) -> set[str]:
    return {function.name for function in _lifetimes(text)[0].homes(0)}


@pytest.mark.parametrize("more", _GONE.values(), ids=_GONE)
def test_an_optimizer_is_gone_with_the_function_that_made_it(more: str) -> None:
    assert _homes(_PROGRAM.format(more=more)) == {"train"}


@pytest.mark.parametrize("more", _KEPT.values(), ids=_KEPT)
def test_an_optimizer_that_something_else_gets_outlives_it(more: str) -> None:
    assert _homes(_PROGRAM.format(more=more)) == set()


def test_an_optimizer_that_is_handed_out_is_gone_with_the_caller() -> None:
    text = _PROGRAM.format(more="pass").replace(
        "optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)",
        "optimizer, _ = make(self.net)",
    )
    made = "def make(net):\n    return torch.optim.SGD(net.parameters(), lr=0.1), net\n\n\n"
    assert _homes(text.replace("def main", f"{made}def main")) == {"train"}


def test_one_that_is_made_for_a_file_never_is() -> None:
    text = "import torch\n\nnet = torch.nn.Linear(2, 2)\noptimizer = torch.optim.SGD(net.parameters(), 0.1)\n"
    assert _homes(f"{text}net(torch.ones(2)).sum().backward()\noptimizer.step()\n") == set()


@pytest.mark.parametrize(
    ("call", "begins"), [("trainer.train([])", True), ("Runner(trainer)", False)]
)
def test_there_is_none_before_where_calls_in_sight_make_it(call: str, begins: bool) -> None:
    text = _PROGRAM.format(more="pass").replace("trainer.train([])", call)
    lifetimes, programs = _lifetimes(text)
    assert lifetimes.begins(0, programs.of_optimizers([0])) is begins


_ROUNDS = """\
import torch
from torch.cuda.amp import GradScaler

KEPT = []


def round_of(kind, batches):
    net = torch.nn.Linear(4, 2)
    if kind == "sgd":
        chosen = torch.optim.SGD(net.parameters(), lr=0.1)
    elif kind == "adam":
        chosen = torch.optim.Adam(net.parameters(), lr=0.1)
    {before}
    scaler = GradScaler()
    for x in batches:
        chosen.zero_grad()
        scaler.scale(net(x).sum()).backward()
        scaler.step(chosen)
        scaler.update()


for kind in ("sgd", "adam"):
    round_of(kind, [torch.ones(3, 4)])
"""


@pytest.mark.parametrize(
    ("before", "anew"), [("pass", False), ("KEPT.append(chosen); chosen = KEPT[0]", True)]
)
def test_a_scaler_made_anew_is_told_where_its_optimizer_may_go_on(before: str, anew: bool) -> None:
    project = build({"train.py": Tree("train.py", _ROUNDS.format(before=before))})
    assert any(fault.breach is Breach.REMADE for fault in faults(project)) is anew
