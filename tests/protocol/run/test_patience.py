"""A run ends once it has shown what it looks for, and tells fewer facts apart the longer it goes on: no breach is lost."""

from __future__ import annotations

import pytest
from protocol.seeded_programs import Seeded, seeded

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.protocol.gradients import GradientMachine
from amp_migrate.protocol.run import budget
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.budget import Patience
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.solve import Run

_HEAD = """
import torch
import torch.nn.functional as F

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()

def train(batches, {flags}):
    for x, y in batches:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
"""
_FIRST = """
        if {flag}:
            log(optimizer, "{flag}")
"""
_LAST = """
        if {flag}:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
"""


def _program(flags: int) -> Program:
    names = [f"flag{number}" for number in range(flags)]
    tests = (part.format(flag=name) for part in (_FIRST, _LAST) for name in names)
    text = _HEAD.format(flags=", ".join(names)) + "".join(tests)
    return program_of(build({"train.py": Tree("train.py", text)}))


def _moments(run: Run) -> int:
    assert run.breached()
    return sum(len(summary.came) for summary in run.summaries.values())


def _runs(program: Program) -> tuple[Run, Run]:
    """Return a run that ends with what is sought, and one that goes on to the end."""
    machine = GradientMachine(0, frozenset({0}), alone=True)
    search = Search(program, Memory(program))
    return search.run(machine, program.span), search.apart(machine, program.span)


def test_a_run_ends_once_all_that_it_looks_for_is_shown() -> None:
    short, whole = _runs(_program(4))
    assert _moments(short) * 4 < _moments(whole)
    shown = {breached.sought for breached in whole.breached()}
    assert {breached.sought for breached in short.breached()} == shown


def test_a_run_that_has_met_much_tells_less_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _program(8)
    patient = _moments(_runs(program)[1])
    monkeypatch.setattr(budget, "_HALVES", 50)
    assert _moments(_runs(program)[1]) * 2 < patient


def test_what_a_run_must_not_forget_does_not_wear() -> None:
    patience = Patience(wears=False, met=1_000_000)
    assert patience.weighed(3) == 3


@pytest.mark.parametrize("program", seeded(), ids=lambda p: f"{p.group}: {p.name}")
def test_no_breach_is_lost_without_patience(
    program: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "_HALVES", 1)
    assert program.found()
