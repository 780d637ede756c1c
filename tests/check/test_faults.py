"""Which faults of a migrated training its events show, and which only a run does."""

from __future__ import annotations

import pytest
from equivalence.faults import FAULTS, Fault
from equivalence.programs import apex_program, native_program

from amp_migrate.check.events.claims import STEPS, Claim, Claims
from amp_migrate.check.training import Judge
from amp_migrate.facts.tree import Tree
from amp_migrate.project import build

NO_EVENTS = {
    "model.half() left in": "the type of weights is no event",
    "eval mode left on": "the mode of a network is no event",
    "learning rate doubled in a group": "settings of an optimizer are no events",
}
"""Faults that `verify` finds when the program runs, and why reading it does not."""


_TOLD = Claims((Claim(STEPS, "train.py", 34, 34, is_note=True),))
"""The one difference of the programs that a rule speaks of: each optimizer skips by itself."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_what_events_show_is_refused(fault: Fault) -> None:
    """Every fault is refused, but for those that are named above with the reason."""
    before = {"train.py": Tree("train.py", apex_program("mlp"))}
    found = (
        Judge(before, build(before))
        .judged({"train.py": fault.seed(native_program("mlp"))}, _TOLD)
        .objections
    )
    assert bool(found) is (fault.name not in NO_EVENTS)


def test_the_migration_without_a_fault_passes() -> None:
    """Nothing is said of the program that the faults are seeded into."""
    before = {"train.py": Tree("train.py", apex_program("mlp"))}
    assert (
        Judge(before, build(before)).judged({"train.py": native_program("mlp")}, _TOLD).objections
        == []
    )
    assert {fault.name for fault in FAULTS} >= NO_EVENTS.keys()
