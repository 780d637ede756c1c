"""Runnable fixtures of the project verify, and wrong migrations of each are found.

The two tests of a fixture come one after the other and share the records of its runs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from fixture_support import Case, only_fixes
from fixture_verified import (
    CLIPPING_IN_VAIN,
    DIFFERING,
    NOT_INJECTED,
    RAISING,
    SCALING_APART,
    SKIPPING_THE_NEXT,
    THROWING_AWAY,
    TRAINING,
    VERIFIED,
    WITHOUT_CASTS,
)

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison.census import compare_census
from amp_migrate.equivalence.comparison.scales import rule_for
from amp_migrate.equivalence.comparison.steps import compare
from amp_migrate.equivalence.ladder import Ladder
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.workspace import Trees, changed_files
from equivalence.forked import ForkedRunner, record_files

LOGIC = CaptureConfig("", casts=False, inject=(2,), growth=3)
NUMERIC = CaptureConfig("", census=True, inject=(2,))
CENSUS = "dtype census"


_LATEST: dict[tuple[frozenset[tuple[str, str]], CaptureConfig], Run] = {}
_KEPT = 16


def recorded(
    files: dict[str, str], script: str, arguments: tuple[str, ...], config: CaptureConfig
) -> Run:
    """Return the record of a program, made once for the tests of its fixture."""
    known = frozenset(files.items()), config
    if known not in _LATEST:
        for oldest in list(_LATEST)[: 1 - _KEPT]:
            del _LATEST[oldest]
        _LATEST[known] = record_files(files, script, arguments, config)
    return _LATEST[known]


class SharingRunner(ForkedRunner):
    """Runs no program twice in the same way, and so does not ask whether one repeats itself."""

    record = staticmethod(recorded)

    def before(self, purpose: str, config: CaptureConfig) -> Run | None:
        """Return the record of the side before; None, as of an import, where it would be an earlier one."""
        return None if purpose.endswith(" again") else super().before(purpose, config)


def before(case: Case, config: CaptureConfig) -> Run:
    """The record of the Apex program."""
    config = replace(config, inject_last=case.name in THROWING_AWAY)
    return recorded(case.reference, case.run, case.run_args, config)


def found_in(case: Case, files: dict[str, str], config: CaptureConfig) -> str | None:
    """Return the first quantity that differs, or the census, or None."""
    if config.casts and case.name in NOT_INJECTED:
        config = replace(config, inject=())
    ours = before(case, config)
    assert ours.steps, ours.failure
    apex = ours.notes.get("apex_amp", {"dynamic": False, "opt_level": "O0"})
    last = case.name in THROWING_AWAY
    config = replace(config, inject=config.inject if apex["dynamic"] else (), inject_last=last)
    theirs = recorded(files, case.run, case.run_args, config)
    if config.census and ours.processes and theirs.processes:
        one, other = ours.processes[0].census, theirs.processes[0].census
        assert one is not None and other is not None
        rows = compare_census(one, other, apex["opt_level"])
        if any(row.kind == "fault" for row in rows):
            return CENSUS
    first = compare(ours, theirs, rule_for(ours, theirs, config.growth)).first
    return None if first is None else first.quantity


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
        {"clip norm", "gradient norm", "loss scale", "skipped steps", "number of iterations"},
    ),
}


# Nearly every fixture can have either: it has one, the next has the other.
ANYWHERE = ("missing autocast", "step not rewritten")

# AMP or its scaling is off, clipping is off or in a class or file that does not run, or the unscaled gradients are only kept, told or thrown away: the training stays as it was.
HARMLESS = {
    ("step not rewritten", "flags/switched_off"),
    ("step not rewritten", "flags/setting_in_a_variable_off"),
    ("step not rewritten", "flags/setting_in_an_entry_off"),
    ("step not rewritten", "flags/setting_that_may_be_missing_off"),
    ("step not rewritten", "flags/name_or_none_off"),
    ("step not rewritten", "project/amp_or_none_as_argument_off"),
    ("step not rewritten", "evaluate/scale_of_one_out_of_sight"),
    ("step not rewritten", "project/flag_of_a_library"),
    ("step not rewritten", "project/flag_of_a_library_with_mixins"),
    ("step not rewritten", "fixes/clip_in_one_branch"),
    ("missing autocast", "project/callback_of_another_program"),
    ("missing autocast", "evaluate/results_thrown_away"),
    ("missing unscale_", "layout/setup_that_returns_early"),
    ("missing unscale_", "clip/saved_gradients"),
    ("missing unscale_", "clip/remembered_by_helper"),
    ("missing unscale_", "clip/parameters_from_another_file"),
    ("missing unscale_", "clip/condition_per_micro_batch"),
    ("missing unscale_", "clip/norm_of_every_phase"),
    ("missing unscale_", "clip/report_where_others_step"),
    ("missing unscale_", "clip/gradients_thrown_away_by_name"),
}


# Only where the overflow meets gradients that a helper zeroes does it matter that they are unscaled before.
_ZEROED = (
    "clip/gradients_set_to_zero_by_a_helper",
    "clip/cleared_before_a_step_of_the_next_round",
)
OVERFLOWING_AT = {("missing unscale_", name): 3 for name in _ZEROED}

# The penalty that scaled gradients make too large is a loss of its own; an overflow that is zeroed skips no step.
EARLIER = {
    ("missing unscale_", "several/penalty_behind_a_read"): "loss",
    ("step not rewritten", "several/penalty_behind_an_update"): "loss",
    **{("missing unscale_", name): "skipped steps" for name in _ZEROED},
}


@cache
def seeded() -> dict[str, list[str]]:
    """Return the faults that are seeded into each fixture."""
    names = [name for name in TRAINING if name not in (CLIPPING_IN_VAIN, SCALING_APART)]
    found = {name: _faults_of(name, ANYWHERE[at % 2]) for at, name in enumerate(names)}
    return {name: faults for name, faults in found.items() if faults and name in VERIFIED}


def _faults_of(name: str, preferred: str) -> list[str]:
    """Return the faults that a fixture can have, of those that stand anywhere the preferred one."""
    fitting = [
        fault
        for fault, (pattern, _, _, _) in WRONG.items()
        if (fault, name) not in HARMLESS
        and any(re.search(pattern, text, re.MULTILINE) for text in TRAINING[name].after.values())
    ]
    if preferred not in fitting:
        return fitting
    return [fault for fault in fitting if fault == preferred or fault not in ANYWHERE]


@pytest.mark.parametrize(
    "name", sorted(VERIFIED, key=lambda name: (name not in seeded(), name)), scope="module"
)
def test_fixture_verifies(name: str, tmp_path: Path) -> None:
    """All levels of verify agree with the expected output of the codemod, fixed Apex against native."""
    case = TRAINING[name]
    fixes = tuple({e.code for e in case.findings if e.status == "fixed"})
    sides = {"before": only_fixes(case) if fixes else case.before, "after": case.after}
    for side, files in sides.items():
        for path, text in files.items():
            (tmp_path / side / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / side / path).write_text(text, encoding="utf-8")
    trees = Trees(
        before=tmp_path / "before",
        after=tmp_path / "after",
        full=tmp_path / "after" if name in THROWING_AWAY else None,
        fixes=fixes,
        changed=tuple(changed_files(tmp_path / "before", tmp_path / "after")),
    )
    options = Options(
        command=("python", case.run, *case.run_args),
        project=tmp_path / "before",
        inject=() if name in NOT_INJECTED else (2,),
        growth=3,
        casts=name not in WITHOUT_CASTS,
    )
    result = Ladder(SharingRunner(options, trees, tmp_path, lambda *told: None)).climb()
    expected = {RAISING: ("INCONCLUSIVE",), **dict.fromkeys(DIFFERING, ("DIFFERENT",))}
    assert result.verdict.word in expected.get(name, ("EXACT", "EQUIVALENT")), result.verdict
    if name == CLIPPING_IN_VAIN:
        assert result.verdict.reason.startswith("clip norm at step 3")
    if name in SKIPPING_THE_NEXT:
        assert result.verdict.reason.startswith("skipped steps at step 2")
    if name == SCALING_APART:
        assert result.verdict.reason.startswith("loss scale at step 3")
    if fixes and result.fix_check is not None:
        assert result.fix_check.get("agrees", True)


@pytest.mark.parametrize("name", seeded(), scope="module")
def test_wrong_migrations_are_found(name: str) -> None:
    """The same mistake in every fixture shows in a quantity that it is known by."""
    missed = []
    for fault in seeded()[name]:
        pattern, replacement, config, quantities = WRONG[fault]
        files = {
            path: re.sub(pattern, replacement, text, flags=re.MULTILINE)
            for path, text in TRAINING[name].after.items()
        }
        known = {EARLIER[fault, name]} if (fault, name) in EARLIER else quantities
        if (fault, name) in OVERFLOWING_AT:
            config = replace(config, inject=(OVERFLOWING_AT[fault, name],))
        found = found_in(TRAINING[name], files, config)
        if found not in known:
            missed.append((fault, found))
    assert missed == []
