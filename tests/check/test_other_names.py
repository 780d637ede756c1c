"""What the check sees does not hang on the name under which a file calls `amp.scale_loss`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from check.test_compare import EVERY, objections
from check.trainings.planted import Training, spoilt

_IMPORT = "from apex import amp\n"
_RENAMED = "from apex import amp; from apex.amp import scale_loss as scaled_by\n"
NAMES = (
    "an autocast in an attribute",
    "two flags that amp.initialize is given",
    "a variable that two flags make",
    "either of two flags",
    "initialized where an attribute is missing",
    "layers thaw",
    "a second optimizer behind the training of the first",
    "an autocast kept in an attribute of a trainer",
    "evaluations out of sight",
)


def _renamed(text: str) -> str:
    """Return a text that imports `scale_loss` by another name, in as many lines."""
    if "amp.scale_loss(" not in text or _IMPORT not in text:
        return text
    return text.replace(_IMPORT, _RENAMED, 1).replace("amp.scale_loss(", "scaled_by(")


def _under_another_name(
    training: Training, after: dict[str, str]
) -> tuple[Training, dict[str, str]]:
    before = {path: _renamed(text) for path, text in training.before.items()}
    staying = {path for path, text in after.items() if text == training.before[path]}
    written = {path: before[path] if path in staying else text for path, text in after.items()}
    return replace(training, before=before), written


@pytest.mark.parametrize("training", [t for t in EVERY if t.name in NAMES], ids=lambda t: t.name)
def test_a_fault_is_seen_under_any_name(training: Training) -> None:
    """And a sound migration passes."""
    assert _renamed(next(iter(training.before.values()))) not in training.before.values()
    assert objections(*_under_another_name(training, training.after)) == []
    for fault in training.faults:
        assert objections(*_under_another_name(training, spoilt(training, fault))), fault
