"""The hunt for failing programs: every seed once, failures made small, kept and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from generated.choices.features import OPTIONS, draw, simplest
from generated.choices.sets import Features
from generated.judging import saved
from generated.judging.hunt import Summary, judged
from generated.judging.shrink import shrunk
from generated.written.program import build


def test_every_seed_is_judged_once() -> None:
    """Two workers judge each seed, and the summary counts them all."""
    summary = Summary()
    for seed, outcome, why in judged(range(40, 52), workers=2):
        summary.add(seed, outcome, why)
    facts = summary.data()
    assert facts["programs"] == 12
    assert facts["outcomes"] == {"migrated": 12}
    assert facts["failures"] == []
    assert sum(sum(counts.values()) for counts in facts["features"]["layout"].values()) == 12  # type: ignore[index]


def test_failure_is_made_small() -> None:
    """Only the options that the failure needs stay away from the simplest ones."""

    def fails(f: Features) -> bool:
        return f["clip"] == "master" and f["layout"] == "trainer"

    start = next(f for f in map(draw, range(1000)) if fails(f))
    small = shrunk(start, fails)
    assert {n: small[n] for n in OPTIONS if small[n] != simplest(n)} == {
        "layout": "trainer",
        "clip": "master",
    }


def test_failure_is_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A case holds the files of the program and how it runs."""
    monkeypatch.setattr(saved, "SAVED", tmp_path)
    program = build(draw(7))
    folder = saved.save(program, "a reason", "case")
    read = saved.load(folder)
    assert list(saved.cases()) == [folder]
    assert (read.files, read.twin, read.entry) == (program.files, program.twin, program.entry)
    assert (read.runs, read.overflow, read.casts) == (program.runs, program.overflow, program.casts)
