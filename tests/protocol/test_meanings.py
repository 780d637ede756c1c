"""A name and the test that it stands for come out alike, until something that they read is another one."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_TEXT = """
import torch
import torch.nn.functional as F

class Trainer:
    def __init__(self, every):
        self.every = every
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()

    def is_full(self, i):
        return (i + 1) % self.every == 0

    def clip(self, wanted=True):
        if wanted:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def fit(self, loader, k):
        for i, (x, y) in enumerate(loader):
            {before}
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.model(x), y)
            if {waits}:
                loss.backward()
            else:
                self.scaler.scale(loss).backward()
            {between}
            if {steps}:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
            self.optimizer.zero_grad()
"""
_ALIKE = {
    "a variable": ("full = (i + 1) % k == 0", "not full", "pass", "(i + 1) % k == 0"),
    "the variable asked first": ("full = (i + 1) % k == 0", "(i + 1) % k != 0", "pass", "full"),
    "a variable of two": ("on = k > 1 and i > 3", "not on", "pass", "k > 1 and i > 3"),
    "a variable of a variable": (
        "full = (i + 1) % k == 0; waits = not full",
        "waits",
        "pass",
        "(i + 1) % k == 0",
    ),
    "a method": ("pass", "not self.is_full(i)", "pass", "self.is_full(i)"),
    "what a method returns": (
        "pass",
        "not self.is_full(i)",
        "pass",
        "(i + 1) % self.every == 0",
    ),
    "what a variable holds of a method": (
        "full = self.is_full(i)",
        "not full",
        "pass",
        "self.is_full(i)",
    ),
}
_APART = {
    "another number": ("full = (i + 1) % k == 0", "not full", "pass", "i % k == 0"),
    "a number that is changed": (
        "full = (i + 1) % k == 0",
        "not full",
        "i += 1",
        "(i + 1) % k == 0",
    ),
    "a variable bound anew": ("full = i > k", "not full", "full = len(loader) > i", "full"),
    "an attribute that is set": (
        "full = self.is_full(i)",
        "not full",
        "self.every = len(loader)",
        "self.is_full(i)",
    ),
    "a method of something else": ("pass", "not self.is_full(i)", "pass", "self.is_full(k)"),
}


def _breaches(before: str, waits: str, between: str, steps: str) -> set[Breach]:
    text = _TEXT.format(before=before, waits=waits, between=between, steps=steps)
    return {fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))}


@pytest.mark.parametrize("name", _ALIKE)
def test_one_test_comes_out_one_way(name: str) -> None:
    assert not _breaches(*_ALIKE[name])


@pytest.mark.parametrize("name", _APART)
def test_two_tests_come_out_either_way(name: str) -> None:
    assert Breach.SCALED_STEP in _breaches(*_APART[name])


_GIVEN = _TEXT.replace(
    "            if {waits}:\n                loss.backward()\n            else:\n    ", ""
)
_GIVEN = _GIVEN.replace(
    "else:\n                self.optimizer.step()", "else:\n                continue"
)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("(i + 1) % k == 0", True),
        ("full", True),
        ("not (i + 1) % k", True),
        ("i % k == 0", False),
    ],
)
def test_what_a_function_does_by_a_test_that_it_is_given_is_known_behind_it(
    given: str, told: bool
) -> None:
    text = _GIVEN.format(
        before="full = (i + 1) % k == 0",
        between=f"self.clip({given})",
        steps="(i + 1) % k == 0",
    )
    found = {fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))}
    assert (Breach.UNSCALED_TWICE in found) is not told
