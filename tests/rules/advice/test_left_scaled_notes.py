"""When a migration says that a step's gradients were left scaled by Apex."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

FIXTURES = Path(__file__).parents[3] / "fixtures"
BEFORE = FIXTURES / "several/optimizers_stepped_in_turn_by_a_loop/before.py"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("", "", True),
        ('opt_level="O1"', 'opt_level="O0"', False),
        ("scale_loss(loss, first)", "scale_loss(loss, [first, second])", False),
    ],
    ids=["the first is named", "nothing is scaled", "both are named"],
)
def test_a_loop_steps_an_optimizer_that_no_block_names(old: str, new: str, told: bool) -> None:
    """The note stands only where Apex scaled, and named another optimizer of the loop alone."""
    text = BEFORE.read_text().replace(old, new) if old else BEFORE.read_text()
    result = migrate([Source.from_bytes("a.py", text.encode())], Settings())
    assert any(f.code == "AMP214" for f in result.plan.findings()) == told
