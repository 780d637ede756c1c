"""Events of a training before and after: sound migrations pass, planted faults are seen where they lie."""

from __future__ import annotations

import pytest
from check.accepted import ACCEPTED
from check.across_files import ACROSS_FILES
from check.claimed import CLAIMED
from check.disabled import DISABLED
from check.forwards import EVALUATIONS
from check.guarded_calls import GUARDED_CALLS
from check.helpers import HELPERS
from check.holders import HOLDERS
from check.planted import TRAININGS, Training
from check.present import PRESENT
from check.programs import PROGRAMS
from check.roundabout import ROUNDABOUT
from check.spoilt import SPOILT
from check.switched import SWITCHED
from check.teachers import TEACHERS
from check.validating import VALIDATING

from amp_migrate.check.events.claims import Claim, Claims
from amp_migrate.check.training import Objection, objections
from amp_migrate.facts.tree import Tree

EVERY = (
    *TRAININGS, *ACCEPTED, *EVALUATIONS, *PROGRAMS, *CLAIMED, *HELPERS, *PRESENT, *ROUNDABOUT, *ACROSS_FILES,
    *SWITCHED, *DISABLED, *HOLDERS, *TEACHERS, *SPOILT, *VALIDATING, *GUARDED_CALLS,
)  # fmt: skip


def _objections(training: Training, after: dict[str, str]) -> list[Objection]:
    before = {path: Tree(path, text) for path, text in training.before.items()}
    claims = Claims(tuple(Claim(*claim) for claim in training.claims))
    changed = {path: text for path, text in after.items() if text != training.before[path]}
    return objections(before, changed, claims)


@pytest.mark.parametrize("training", EVERY, ids=lambda t: t.name)
def test_a_sound_migration_passes(training: Training) -> None:
    """What does the same is not objected to."""
    assert _objections(training, training.after) == []


@pytest.mark.parametrize(
    ("training", "fault"),
    [
        pytest.param(training, fault, id=f"{training.name}: {fault}")
        for training in EVERY
        for fault in training.faults
    ],
)
def test_a_planted_fault_is_seen(training: Training, fault: str) -> None:
    """The objection names a line of the old text."""
    after = dict(training.after)
    for old, new in training.faults[fault]:
        held = [path for path, text in after.items() if old in text]
        assert held, f"nothing to spoil: {old}"
        for path in held:
            after[path] = after[path].replace(old, new)
    found = _objections(training, after)
    assert found
    lines = {path: text.count("\n") for path, text in training.before.items()}
    assert all(0 <= item.place.line <= lines[item.place.path] for item in found)
