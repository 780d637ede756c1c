"""Every runnable fixture of the project verifies, and wrong migrations of each are found."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fixture_support import Case, cases, only_fixes

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.census import compare_census
from amp_migrate.equivalence.compare import compare
from amp_migrate.equivalence.records import Run
from amp_migrate.equivalence.scales import rule_for

from .forked import record_files

LOGIC = CaptureConfig("", casts=False, inject=(2,), growth=3)
NUMERIC = CaptureConfig("", census=True, inject=(2,))
CENSUS = "dtype census"
# It overflows by itself: an injected one would part the two loss scales of Apex from the one of GradScaler.
OVERFLOWING = "project/apex_behind_a_module"
THROWING_AWAY = "fixes/zero_grad_kept_without_fixes"

# Model-only programs take no step, and verify says so.
TRAINING = {
    case.name: case
    for case in cases()
    if case.run
    and case.changed
    and any(".backward(" in text for text in case.before.values())
    and "inference" not in case.name
}


_RECORDED: dict[tuple[str, frozenset[tuple[str, str]], CaptureConfig], Run] = {}


def before(case: Case, config: CaptureConfig) -> Run:
    """The record of the Apex program, made once."""
    # Without its fix this program throws away all but its last micro-batch, with its overflow.
    config = replace(config, inject_last=case.name == THROWING_AWAY)
    known = case.name, frozenset(case.reference.items()), config
    if known not in _RECORDED:
        _RECORDED[known] = record_files(case.reference, case.run, case.run_args, config)
    return _RECORDED[known]


def found_in(case: Case, files: dict[str, str], config: CaptureConfig) -> str | None:
    """Return the first quantity that differs, or the census, or None."""
    if config.casts and case.name == OVERFLOWING:
        config = replace(config, inject=())
    ours = before(case, config)
    assert ours.steps, ours.failure
    apex = ours.notes.get("apex_amp", {"dynamic": False, "opt_level": "O0"})
    last = case.name == THROWING_AWAY
    config = replace(config, inject=config.inject if apex["dynamic"] else (), inject_last=last)
    theirs = record_files(files, case.run, case.run_args, config)
    if config.census and ours.processes and theirs.processes:
        one, other = ours.processes[0].census, theirs.processes[0].census
        assert one is not None and other is not None
        rows = compare_census(one, other, apex["opt_level"])
        if any(row.kind == "fault" for row in rows):
            return CENSUS
    first = compare(ours, theirs, rule_for(ours, theirs, config.growth)).first
    return None if first is None else first.quantity


@pytest.mark.parametrize("config", [LOGIC, NUMERIC], ids=["logic", "casts"])
@pytest.mark.parametrize("name", TRAINING)
def test_fixture_is_exact(name: str, config: CaptureConfig) -> None:
    """The expected output of the codemod takes the very steps of the Apex program."""
    assert found_in(TRAINING[name], TRAINING[name].after, config) is None


FIXED = [name for name, case in TRAINING.items() if any(e.status == "fixed" for e in case.findings)]


@pytest.mark.parametrize("config", [LOGIC, NUMERIC], ids=["logic", "casts"])
@pytest.mark.parametrize("name", FIXED)
def test_fixes_alone_are_the_program_before(name: str, config: CaptureConfig) -> None:
    """With a fix rule active, verify compares with the Apex program that `--only-fixes` writes."""
    case = replace(TRAINING[name], corrected=only_fixes(TRAINING[name].before))
    assert found_in(case, case.after, config) is None


WRONG = {
    "missing unscale_": (
        r"^[ \t]*[\w.]*scaler\.unscale_\(.*\)\r?\n",
        "",
        LOGIC,
        {"clip norm", "gradient norm", "order of backward, clip and step", "number of iterations"},
    ),
    "missing autocast": (r"autocast\(\):", "autocast(enabled=False):", NUMERIC, {CENSUS}),
    "update between the steps": (
        r"^([ \t]*)([\w.]*scaler)\.step\(([\w.]+)\)\n"
        r"(?=(?:(?!.*(?:backward|update|else|elif)).*\n){0,3}?\1\2\.step\()",
        r"\1\2.step(\3)\n\1\2.update()\n",
        LOGIC,
        {"clip norm", "gradient norm", "loss scale", "number of iterations"},
    ),
    "update inside the loop over the steps": (
        r"^([ \t]*)(for .*:\n)([ \t]*)([\w.]*scaler)\.step\((.*)\)\n\1\4\.update\(\)\n",
        r"\1\2\3\4.step(\5)\n\3\4.update()\n",
        LOGIC,
        {"clip norm", "gradient norm", "loss scale", "number of iterations"},
    ),
    "step not rewritten": (
        r"[\w.]*scaler\.step\(([\w.]+)\)",
        r"\1.step()",
        LOGIC,
        {"clip norm", "gradient norm", "skipped steps", "number of iterations"},
    ),
}


# AMP or its scaling is off, clipping is off, or the unscaled gradients are only kept: the training stays as it was.
HARMLESS = {
    ("step not rewritten", "flags/switched_off"),
    ("step not rewritten", "evaluate/scale_of_one_out_of_sight"),
    ("missing unscale_", "clip/saved_gradients"),
    ("missing unscale_", "clip/remembered_by_helper"),
    ("missing unscale_", "clip/condition_per_micro_batch"),
}


def seeded() -> list[tuple[str, str]]:
    """Return (fault, fixture) for every fixture the fault can be seeded into."""
    return [
        (fault, name)
        for fault, (pattern, _, _, _) in WRONG.items()
        for name, case in TRAINING.items()
        if (fault, name) not in HARMLESS
        and any(re.search(pattern, text, re.MULTILINE) for text in case.after.values())
    ]


@pytest.mark.parametrize(("fault", "name"), seeded())
def test_wrong_migration_is_found(fault: str, name: str) -> None:
    """The same mistake in every fixture shows in a quantity that it is known by."""
    pattern, replacement, config, quantities = WRONG[fault]
    files = {
        path: re.sub(pattern, replacement, text, flags=re.MULTILINE)
        for path, text in TRAINING[name].after.items()
    }
    assert found_in(TRAINING[name], files, config) in quantities
