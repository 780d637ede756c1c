"""The headline trainings: their native forms are what the codemod writes, and they verify."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison.scales import rule_for
from amp_migrate.equivalence.comparison.steps import compare
from amp_migrate.equivalence.runs.records import Run
from equivalence.forked import record

ROOT = Path(__file__).parents[2]
HEADLINE = ROOT / "fixtures" / "headline"
PROGRAMS = sorted(path.name for path in HEADLINE.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_form_is_the_codemods_output(name: str, tmp_path: Path) -> None:
    """Byte for byte."""
    script = tmp_path / "train.py"
    script.write_bytes((HEADLINE / name / "apex" / "train.py").read_bytes())
    options = ["--quiet", "--exit-zero", "--api", "torch.cuda.amp"]
    subprocess.run(
        [sys.executable, "-m", "amp_migrate", str(script), *options], check=True, cwd=ROOT
    )
    assert script.read_bytes() == (HEADLINE / name / "native" / "train.py").read_bytes()


def tiny(path: Path, config: CaptureConfig) -> Run:
    """Record one of the scripts in its CPU size."""
    source = path.read_text(encoding="utf-8").replace("parse_args()", "parse_args(['--tiny'])")
    return record(source, config)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_forms_take_the_same_steps(name: str) -> None:
    """Casts off, with an overflow: equal in every bit."""
    config = CaptureConfig("", steps=6, casts=False, inject=(3,), growth=2)
    before = tiny(HEADLINE / name / "apex" / "train.py", config)
    after = tiny(HEADLINE / name / "native" / "train.py", config)
    assert [one.skipped for one in before.steps] == [False, False, True, False, False, False]
    assert compare(before, after, rule_for(before, after, 2)).exact


def test_fp32_form_trains_without_scaling() -> None:
    """The fp32 script takes the same first step as the Apex form with casts off."""
    config = CaptureConfig("", steps=2, casts=False)
    plain = tiny(HEADLINE / "simple_cnn" / "fp32" / "train.py", config)
    apex = tiny(HEADLINE / "simple_cnn" / "apex" / "train.py", config)
    assert [one.scale for one in plain.steps] == [1.0, 1.0]
    assert [one.attempts for one in plain.steps] == [one.attempts for one in apex.steps]
