"""`verify --enable` holds a training with AMP against the one in FP32 that it was made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from equivalence.forked import forked_launches  # noqa: F401

from amp_migrate.equivalence.check import check
from amp_migrate.equivalence.comparison.verdict import EQUIVALENT
from amp_migrate.equivalence.options import Options

pytestmark = pytest.mark.usefixtures("forked_launches")
CASE = Path(__file__).resolve().parents[2] / "fixtures" / "enable" / "no_sync"


def test_enabled_training_is_verified(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((CASE / "before.py").read_text())
    command = (sys.executable, "train.py")
    result = check(Options(command, tmp_path, enables=True, inject=(), steps=4, casts=True))
    assert result.verdict.word == EQUIVALENT, result.verdict
    assert result.logic is not None and result.logic.comparison.exact
    assert (result.before_label, result.after_label) == ("FP32", "native AMP")
    assert result.changed == ("train.py",)
