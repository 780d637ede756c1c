"""What is said of copies of networks, which O2 left in fp32 or ran the network itself for."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_AVERAGE = """import copy
import torch
from apex import amp

class Average:
    def __init__(self, net):
        self.net = copy.deepcopy(net)

    def update(self, net):
        for own, new in zip(self.net.parameters(), net.parameters()):
            own.data.lerp_(new.data.float(), 0.01)

def score(net, x):
    net.eval()
    with torch.no_grad():
        return net(x).argmax(1)

def main(x, y, args):
    net = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    {before}
    net, optimizer = amp.initialize(net, optimizer, opt_level={level})
    {after}
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        average.update(net)
    print(score(net, x), score(average.net, x))
"""
_TEACHER = """import torch
from copy import deepcopy
from apex import amp

def main(x, args):
    student = torch.nn.Sequential(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    {before}
    student, optimizer = amp.initialize(student, optimizer, opt_level={level})
    {after}
    for _ in range(3):
        with torch.no_grad():
            wanted = teacher(x)
        loss = torch.nn.functional.mse_loss(student(x), wanted)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_MADE = {_AVERAGE: "average = Average(net)", _TEACHER: "teacher = deepcopy(student)"}


def _notes(program: str, level: str, *, early: bool) -> list[str]:
    made = _MADE[program]
    given = {"before": made, "after": "pass"} if early else {"before": "pass", "after": made}
    text = program.format(level=level, **given)
    result = migrate([Source.from_bytes("train.py", text.encode())], Settings())
    assert result.outcomes[0].after is not None
    return [f.message for f in result.plan.findings() if f.code == "AMP123"]


@pytest.mark.parametrize("program", [_AVERAGE, _TEACHER], ids=["average", "teacher"])
@pytest.mark.parametrize(
    ("level", "where"),
    [("'O2'", "at O2, "), ("args.level", "where `args.level` is O2 or O3, ")],
)
def test_a_copy_from_before_stayed_in_fp32(program: str, level: str, where: str) -> None:
    (message,) = _notes(program, level, early=True)

    assert message.startswith(f"{where}Apex left this copy of")
    assert "ran it without casts" in message


@pytest.mark.parametrize("program", [_AVERAGE, _TEACHER], ids=["average", "teacher"])
def test_a_later_copy_ran_the_network_itself(program: str) -> None:
    (message,) = _notes(program, "'O2'", early=False)

    assert "itself under Apex, with its weights" in message


@pytest.mark.parametrize("program", [_AVERAGE, _TEACHER], ids=["average", "teacher"])
@pytest.mark.parametrize("early", [True, False])
def test_o1_cast_every_copy(program: str, early: bool) -> None:
    assert _notes(program, "'O1'", early=early) == []
