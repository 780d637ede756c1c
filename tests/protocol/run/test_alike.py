"""Optimizers that nothing in a program tells apart are followed by one run; those that something does have runs of their own."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults_of
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.protocol.faults import Breach, Fault
from amp_migrate.protocol.gradients import GradientMachine
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.alike import Alike
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.solve import Run

_TEXT = """
import torch
import torch.nn.functional as F

model = torch.nn.Linear(1, 1)

def plain():
    return torch.optim.SGD(model.parameters(), lr=0.1)

def adaptive():
    return torch.optim.Adam(model.parameters())

def slow():
    return torch.optim.ASGD(model.parameters())

def train(batches, optimizers):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        model.zero_grad()
        scaler.scale(loss).backward()
        {clip}
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()

def main(batches):
    train(batches, [plain(), adaptive(), slow()])

def resume(batches, optimizers):
    train(batches, optimizers)
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def _program(clip: str) -> Program:
    text = _TEXT.replace("{clip}", clip)
    return program_of(build({"train.py": Tree("train.py", text)}))


def _machine(number: int) -> GradientMachine:
    return GradientMachine(number, frozenset({0}), alone=False)


def _told(program: Program, numbers: list[int]) -> tuple[list[list[Fault]], int]:
    """Return what is told of some optimizers, and how many runs that takes."""
    search, runs = Search(program, Memory(program)), []
    alike = Alike([_machine(number) for number in numbers])

    def faults(machine: Machine) -> list[Fault]:
        runs.append(machine)
        return search.apart(machine, program.span).faults()

    return [alike.of(_machine(n), program.span, faults) for n in numbers], len(runs)


def test_one_run_is_that_of_all_whose_events_are_the_same() -> None:
    told, runs = _told(_program(_CLIP), [0, 1, 2])
    assert runs == 1
    assert [[fault.breach for fault in faults] for faults in told] == [[Breach.SCALED_READ]] * 3


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_told_of_each_is_what_a_run_of_its_own_tells(number: int) -> None:
    program = _program(_CLIP)
    told, _ = _told(program, [0, 1, 2])
    own = Search(program, Memory(program)).apart(_machine(number), program.span)
    assert told[number] == own.faults()


def test_one_that_an_event_names_alone_has_a_run_of_its_own() -> None:
    program = _program("scaler.unscale_(optimizers[0])\n        " + _CLIP)
    numbers = [o.number for o in program.training.objects.optimizers]
    told, runs = _told(program, numbers)
    assert runs > 1
    assert any(told)
    for number, faults in zip(numbers, told, strict=True):
        own = Search(program, Memory(program)).apart(_machine(number), program.span)
        assert faults == own.faults()


def test_the_check_follows_one_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    apart: list[Memory] = []
    made = Run.__init__

    def counted(
        self: Run, program: Program, machine: Machine, memory: Memory, *rest: object
    ) -> None:
        if memory.forgets and type(memory).__name__ == "OnMemory":
            apart.append(memory)
        made(self, program, machine, memory, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "__init__", counted)
    program = _program(_CLIP)
    assert len(program.training.objects.optimizers) == 3
    found = [fault.breach for fault in faults_of(program)]
    assert found == [Breach.SCALED_READ]
    assert len(apart) == 1
