"""A test for the type of a parameter comes out as the calls give it: one optimizer, or a list of them."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_TEXT = """
import torch
import torch.nn.functional as F

scaler = torch.cuda.amp.GradScaler()

def fit(model, optimizer, loader, clips=True):
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if {test}:
            for one in optimizer:
                scaler.step(one)
        else:
            scaler.step(optimizer)
        scaler.update()
        model.zero_grad()

def whole(model, loader):
    fit(model, torch.optim.SGD(model.parameters(), lr=0.1){whole})

def halves(model, loader):
    first = torch.optim.SGD(model.first.parameters(), lr=0.1)
    second = torch.optim.SGD(model.second.parameters(), lr=0.1)
    fit(model, [first, second]{halves})
"""
_TESTS = [
    "type(optimizer) == list",
    "type(optimizer) is list",
    "isinstance(optimizer, list)",
    "isinstance(optimizer, (list, tuple))",
]


def _kinds(test: str, whole: str = "", halves: str = "") -> set[Breach]:
    calls = {"whole": f", loader{whole}", "halves": f", loader{halves}"}
    tree = Tree("train.py", _TEXT.format(test=test, **calls))
    return {fault.breach for fault in faults(build({"train.py": tree}))}


@pytest.mark.parametrize("test", _TESTS)
def test_each_call_takes_its_own_branch(test: str) -> None:
    """Nothing is wrong where only the call that gives one optimizer unscales before the steps."""
    assert _kinds(test, halves=", clips=False") == set()


@pytest.mark.parametrize("test", _TESTS)
def test_a_list_that_comes_to_unscale(test: str) -> None:
    """A GradScaler that is given a list raises, whatever the other call gives."""
    assert Breach.LISTED in _kinds(test, whole=", clips=False")


@pytest.mark.parametrize(
    "test",
    [
        "type(optimizer) == tuple",
        "isinstance(optimizer, dict)",
        "isinstance(optimizer, (list, torch.optim.Optimizer))",
        "isinstance(optimizer, (dict, Listed))",
    ],
)
def test_a_list_that_no_test_asks_for(test: str) -> None:
    """A list goes to the step of one optimizer, or that to the loop, where the test asks for something else."""
    assert _kinds(test, halves=", clips=False")
