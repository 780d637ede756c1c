"""Generated trainings: migrated, run before and after, the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from generated.choices.features import draw
from generated.judging.check import check, checked
from generated.judging.saved import cases, load
from generated.written.program import build

PROGRAMS = 300  # from which wrong migrations take theirs
TRAINED = 60
CHUNK = 10


@pytest.mark.parametrize("first", range(0, TRAINED, CHUNK))
def test_generated_programs_train_the_same(first: int) -> None:
    """A program that is migrated trains to the same bits; one that is left is whole and reported."""
    seeds = range(first, first + CHUNK)
    found = checked([build(draw(seed)) for seed in seeds])
    verdicts = dict(zip(seeds, found, strict=True))
    assert {s: v.why for s, v in verdicts.items() if v.outcome == "failed"} == {}
    assert sum(v.outcome == "migrated" for v in found) >= CHUNK // 2


@pytest.mark.parametrize("folder", list(cases()), ids=lambda folder: folder.name)
def test_saved_programs_train_the_same(folder: Path) -> None:
    """A program that failed once is migrated and trains to the same bits."""
    verdict = check(load(folder))
    assert verdict.outcome != "failed", verdict.why
