"""Judge runs that differ in bits: by one fp32 run, or by the spread of repeated runs."""

from __future__ import annotations

from amp_migrate.equivalence.comparison import envelope
from amp_migrate.equivalence.comparison.anchor import against_anchor, largest_deviation
from amp_migrate.equivalence.comparison.verdict import DIFFERENT, EQUIVALENT, Verdict, inconclusive
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import Runner

_EXPORT = "verify --export before.json"


def anchored(runner: Runner, result: Result, before: Run, after: Run) -> Verdict:
    """Compare the errors of both sides against one run in fp32."""
    anchor = result.logic.before if result.logic is not None else None
    skipped = tuple(step.index for step in before.steps if step.skipped)
    if anchor is None or skipped != tuple(s.index for s in anchor.steps if s.skipped):
        anchor = runner.before("anchor", runner.config(casts=False, growth=None, inject=skipped))
    if anchor is None:
        return inconclusive("the import holds no fp32 run to compare with", _EXPORT)
    result.held_to = "errors against one fp32 run"
    result.errors = against_anchor(anchor.steps, before.steps, after.steps)
    for errors in result.errors:
        if errors.alarm is not None:
            return Verdict(
                DIFFERENT,
                f"{errors.name} is further from fp32 than before allows, at step {errors.alarm}",
            )
    delta = largest_deviation(before.steps, after.steps)
    return Verdict(EQUIVALENT, _why_inexact(result, before), delta)


def _why_inexact(result: Result, before: Run) -> str:
    """Say why no equality of bits was to be expected."""
    level = str(before.notes.get("apex_amp", {}).get("opt_level", ""))
    if level in ("O2", "O3"):
        return (
            f"{level} keeps fp16 weights and casts the model; autocast casts operators and "
            "keeps fp32 weights"
        )
    named = sorted({row.operator.removesuffix("_backward") for row in result.census or ()})
    if named:
        return f"Apex and autocast run {', '.join(named)} in different dtypes"
    return "both run the same operators in the same dtypes, and round differently"


def enveloped(runner: Runner, result: Result, before: Run, after: Run) -> Verdict:
    """Compare with the spread of runs whose weights were moved by one unit in the last place."""
    ours, theirs = [before.steps], [after.steps]
    for kick in range(1, runner.options.runs):
        config = runner.config(casts=True, kick=kick)
        repeated = runner.before(f"envelope {kick}", config)
        if repeated is not None:
            ours.append(repeated.steps)
        theirs.append(runner.after(f"envelope {kick}", config).steps)
    if len(ours) < 2:
        return inconclusive("the import holds no repeated runs", _EXPORT)
    result.held_to = f"envelope of {len(ours)} runs"
    result.bands = envelope.bands(ours, after.steps)
    tested = envelope.equivalence(ours, theirs, runner.options.margin)
    result.equivalence = tested
    for band in result.bands:
        if band.alarm is not None:
            reason = f"{band.name} leaves the noise envelope at step {band.alarm}"
            return Verdict(DIFFERENT, reason)
    if tested.answer == EQUIVALENT:
        return Verdict(EQUIVALENT, delta=max(abs(tested.low), abs(tested.high)))
    reason = f"mean log loss differs by {tested.difference:.2g}, margin {tested.margin:g}"
    if tested.answer == DIFFERENT:
        return Verdict(DIFFERENT, reason)
    return inconclusive(reason, f"verify --runs {2 * runner.options.runs}")
