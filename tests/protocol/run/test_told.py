"""Paths are told apart from where a run along all ways at once came to a breach."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.casts.machine import CastMachine
from amp_migrate.protocol.code.program import program_of
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.memory import Memory

_TEXT = """
import torch
import torch.nn.functional as F

model = torch.nn.Linear(1, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()

class Hook:
    def end(self, loss):
        with {around}:
            scaler.scale(loss).backward()

def step(hook, x, y):
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(model(x), y)
    hook.end(loss)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()

def first(x, y):
    step(Hook(), x, y)

def second(x, y):
    step(Hook(), x, y)

def third(x, y):
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(model(x), y)
        {more}
"""


@pytest.mark.parametrize(
    ("around", "more", "begun"),
    [
        ("torch.enable_grad()", "pass", set()),
        ("torch.enable_grad()", "scaler.scale(loss).backward()", {"third"}),
        ("torch.cuda.amp.autocast()", "pass", {"first", "second"}),
    ],
)
def test_a_run_that_tells_paths_apart_begins_where_a_breach_is_reached(
    around: str, more: str, begun: set[str]
) -> None:
    text = _TEXT.replace("{around}", around).replace("{more}", more)
    program = program_of(build({"train.py": Tree("train.py", text)}))
    search = Search(program, Memory(program))
    anyhow = search.anyhow(CastMachine(), program.span)
    homes = [breach.key.function for breach in anyhow.breached()]
    assert {function.qualname for function, _ in anyhow.leading_to(homes).entries} == begun
    shown = search.run(CastMachine(), program.span).faults()
    assert [fault.breach for fault in shown] == [Breach.CAST_BACKWARD] * bool(begun)
