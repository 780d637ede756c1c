"""Readings of native code that end before they have looked at all ways."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.code.program import program_of
from amp_migrate.rules.native_steps.amp402_scaled_read import remark

_WITH_SCALER = """import torch

scaler = torch.cuda.amp.GradScaler()


def train(model, optimizer, loader):
    for x in loader:
        with torch.cuda.amp.autocast():
            loss = model(x).sum()
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""
_WITH_AUTOCAST = """import torch


def score(model, x):
    with torch.no_grad(), torch.cuda.amp.autocast():
        return model(x)


def train(model, optimizer, x):
    model(x).sum().backward()
    optimizer.step()
    print(score(model, x))
"""


def _told(text: str, most: int) -> list[tuple[int, str]]:
    reading = Reading(program_of(build({"train.py": Tree("train.py", text)})), most)
    return [(d.finding.span.line, d.finding.message) for d in remark(reading)]


@pytest.mark.parametrize(("text", "line"), [(_WITH_SCALER, 3), (_WITH_AUTOCAST, 5)])
def test_a_reading_that_ends_early_says_where_more_may_be_due(text: str, line: int) -> None:
    """The note stands at the first GradScaler, or at the first autocast block where there is none."""
    [(at, message)] = _told(text, 1)
    assert at == line
    assert "more notes may be due" in message


def test_what_was_found_by_then_is_told() -> None:
    """With some moments left less, the clip of scaled gradients is found and the reading not complete."""
    found = {
        tuple("more notes" in message for _, message in _told(_WITH_SCALER, most))
        for most in range(400)
    }
    assert (True,) in found
    assert (False,) in found
    assert (False, True) in found


def test_a_reading_to_the_end_says_nothing_of_it() -> None:
    """A program of usual size is read as a whole."""
    assert [line for line, _ in _told(_WITH_SCALER, 1_000_000)] == [11]
    assert _told(_WITH_AUTOCAST, 1_000_000) == []
