"""What is said of gradients that an epoch leaves where networks alone are cleared."""

from __future__ import annotations

from pathlib import Path

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

_CASE = Path(__file__).parents[3] / "fixtures/accumulate/rest_of_an_epoch_cleared_by_the_network"


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("", "", True),
        ("model.zero_grad()\n        for", "optimizer.zero_grad()\n        for", False),
        ("opt_level=args.level", 'opt_level="O1"', False),
    ],
)
def test_master_weights_kept_what_a_network_cleared(old: str, new: str, kept: bool) -> None:
    """At O2 alone, and where no optimizer is cleared."""
    text = (_CASE / "before.py").read_text(encoding="utf-8").replace(old or "\0", new)
    result = migrate([Source.from_bytes("main.py", text.encode())], Settings(api="torch.cuda.amp"))
    said = [f.message for f in result.plan.findings() if f.code == "AMP203"]
    assert len(said) == 1
    assert ("kept them in its master weights, which `model.zero_grad()`" in said[0]) is kept
