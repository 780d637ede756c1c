"""The faults of a migrated training that `verify` finds when the program runs: reading it shows each of them."""

from __future__ import annotations

from functools import cache

import pytest
from equivalence.faults import FAULTS, Fault
from equivalence.programs import apex_program, native_program

from amp_migrate.check.events.claims import STEPS, Claim, Claims
from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Objection
from amp_migrate.facts.tree import Tree
from amp_migrate.processes import without_collector
from amp_migrate.project import build

_TOLD = Claims((Claim(STEPS, "train.py", 34, 34, is_note=True),))
"""The one difference of the programs that a rule speaks of: each optimizer skips by itself."""


@cache
def _judge() -> Judge:
    before = {"train.py": Tree("train.py", apex_program("mlp"))}
    return Judge(before, build(before))


def _objections(text: str) -> list[Objection]:
    with without_collector():
        return _judge().judged({"train.py": text}, _TOLD).objections


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_fault_is_refused(fault: Fault) -> None:
    """Every fault is refused."""
    assert _objections(fault.seed(native_program("mlp")))


def test_the_migration_without_a_fault_passes() -> None:
    """Nothing is said of the program that the faults are seeded into."""
    assert _objections(native_program("mlp")) == []
