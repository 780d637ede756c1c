"""Runnable fixtures, before under the reference Apex and after natively: the same bits."""

from __future__ import annotations

import pytest
from fixture_run import Mode, run
from fixture_support import Case, cases, only_fixes, with_library

RUNS = [(with_library(case), mode) for case in cases() for mode in case.modes]


@pytest.mark.parametrize(("case", "mode"), RUNS, ids=[f"{c.name}-{mode}" for c, mode in RUNS])
def test_migrated_program_trains_the_same(case: Case, mode: str) -> None:
    """Printed losses and parameter digests agree, with casts and without, through an overflow."""
    how = Mode(casts=mode == "casts", overflow=case.overflow if mode == "logic" else 0)
    before = run(case.reference, case.run, case.run_args, how, apex=True)
    after = run(case.after, case.run, case.run_args, how, apex=False)
    assert before.splitlines()
    assert after == before


CORRECTED = [(case, mode) for case, mode in RUNS if any(e.status == "fixed" for e in case.findings)]


@pytest.mark.parametrize(
    ("case", "mode"), CORRECTED, ids=[f"{c.name}-{mode}" for c, mode in CORRECTED]
)
def test_only_fixes_lead_to_the_same_training(case: Case, mode: str) -> None:
    """The Apex program with the fixes alone trains as the migrated one."""
    how = Mode(casts=mode == "casts", overflow=case.overflow if mode == "logic" else 0)
    before = run(only_fixes(case), case.run, case.run_args, how, apex=True)
    after = run(case.after, case.run, case.run_args, how, apex=False)
    assert before.splitlines()
    assert after == before


def test_a_wrong_migration_is_noticed() -> None:
    """Leaving out `unscale_` before clipping shows in what a program prints."""
    case = next(case for case in cases() if case.name == "clip/master_params")
    name = case.run
    wrong = {name: case.after[name].replace("    scaler.unscale_(optimizer)\n", "")}
    assert wrong != case.after
    how = Mode(casts=False, overflow=0)
    before = run(case.before, name, case.run_args, how, apex=True)
    assert run(wrong, name, case.run_args, how, apex=False) != before
