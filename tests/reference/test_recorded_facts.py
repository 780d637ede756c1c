"""Dtype decisions, loss scales and skipped steps as recorded from Apex 25.04."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amp_migrate.equivalence import reference
from reference import ops, sequences
from reference.support import linear, sgd

_DATA = Path(__file__).parent / "data"
_DTYPES: dict[str, dict[str, str]] = json.loads((_DATA / "dtypes.json").read_text())
_SEQUENCES: dict[str, Any] = json.loads((_DATA / "sequences.json").read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ops.MODES)
def test_result_dtypes_under_o1(mode: str, amp: Any) -> None:
    """Every recorded spelling gives the recorded dtype, or NotImplementedError."""
    model = linear()
    amp.initialize(model, sgd(model), opt_level="O1", verbosity=0)
    recorded = {name: modes[mode] for name, modes in _DTYPES.items() if mode in modes}
    found = {name: ops.outcome(name, mode).removeprefix("torch.") for name in recorded}
    assert found == recorded
    assert len(recorded) > 200


def test_scales_and_skips(amp: Any) -> None:
    """Every scenario moves the scale and skips steps as recorded."""
    found = {}
    for scenario in sequences.scenarios():
        found[scenario.name] = sequences.run(scenario, amp)
        reference.reset()
    assert found == _SEQUENCES
