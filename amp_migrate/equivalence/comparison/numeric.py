"""Judge runs that differ in bits: by one fp32 run, or by the spread of repeated runs."""

from __future__ import annotations

import dataclasses
from typing import Any

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison import envelope
from amp_migrate.equivalence.comparison.anchor import Errors, against_anchor, largest_deviation
from amp_migrate.equivalence.comparison.scales import ScaleRule
from amp_migrate.equivalence.comparison.steps import Difference, compare
from amp_migrate.equivalence.comparison.verdict import DIFFERENT, EQUIVALENT, Verdict, inconclusive
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import SETTLED, Runner

_EXPORT = "verify --export before.json"
UNSTEADY = 0.05
LOWEST = 2.0


def settled_scale(before: Run) -> float | None:
    """Return a loss scale at which before skips no step of its own; None where it skips none, or the scale is no matter.

    Without the skips the weights move on and losses grow otherwise, hence the three halvings to spare. Where all
    steps are skipped none is known, so that the lowest is taken.
    """
    scales = [scale for step in before.steps for scale in step.scales if scale != 1.0]
    skipped = [step for step in before.steps if step.skipped]
    if scales and _only_skips(before) and not all(step.injected for step in skipped):
        return LOWEST
    if scales and any(not step.injected for step in skipped):
        return max(1.0, min(scales) / 8)
    optimizers = {attempt.optimizer for step in before.steps for attempt in step.attempts}
    return max(scales) if scales and skipped and len(optimizers) > 1 else None


def from_settled_scale(
    runner: Runner, level: Level, rule: ScaleRule, config: CaptureConfig
) -> Level:
    """Run `level` again from a smaller loss scale where its sides skip every step, or only move their scales at other times.

    Steps that are skipped compare neither gradients nor updates. Apex halves after a backward,
    GradScaler at its update: with several scaled backwards between two updates they skip other steps
    on the way down from 65536, round otherwise at another scale, and train on other weights from then on.
    """
    first, scale = level.comparison.first, settled_scale(level.before)
    anew = _only_skips(level.before) if first is None else _scales_apart(level, rule, first)
    if scale is None or rule.plain or not anew:
        return level
    config = dataclasses.replace(config, **calmly(scale))
    before = runner.before(SETTLED, config)
    if before is None or not before.steps:
        return level
    after = runner.after(SETTLED, config)
    return Level(level.name, before, after, compare(before, after, rule), scale)


def calmly(scale: float | None) -> dict[str, Any]:
    """Return the settings of a run from a settled scale, in which nothing moves it."""
    return {} if scale is None else {"first_scale": scale, "inject": ()}


def begun_at(scale: float, instead_of: Level) -> str:
    """Say that a pair of runs began at `scale` instead of that of `instead_of`, and why."""
    if instead_of.comparison.exact:
        return (
            f"casts on began at a loss scale of {scale:g} and without injected overflows, as the programs, equal in every "
            "bit up to there, skip every step on the way down from their own"
        )
    return (
        f"casts on began at a loss scale of {scale:g} and without injected overflows, so that neither has to skip: "
        "between two updates Apex moves its scale after each backward and GradScaler none, so they skip other steps "
        "and round otherwise"
    )


def _scales_apart(level: Level, rule: ScaleRule, first: Difference) -> bool:
    """Tell whether the sides differ first where both scales follow their own schedules, which differ."""
    if rule.exact or first.quantity == "loss scale":
        return False
    return _scales(level.before, first.step) != _scales(level.after, first.step)


def _only_skips(run: Run) -> bool:
    return bool(run.steps) and all(step.skipped for step in run.steps)


def _scales(run: Run, index: int) -> tuple[float, ...]:
    return next((step.scales for step in run.steps if step.index == index), ())


def anchored(runner: Runner, result: Result, before: Run, after: Run) -> Verdict:
    """Compare the errors of both sides against one run in fp32."""
    anchor = result.logic.before if result.logic is not None else None
    skipped = tuple(step.index for step in before.steps if step.skipped)
    if anchor is None or skipped != tuple(s.index for s in anchor.steps if s.skipped):
        settled = result.numeric is not None and result.numeric.first_scale is not None
        config = runner.config(casts=False, growth=None, inject=skipped)
        anchor = runner.before("anchor, settled" if settled else "anchor", config)
    if anchor is None:
        return inconclusive("the import holds no fp32 run to compare with", _EXPORT)
    result.held_to = "errors against one fp32 run"
    result.errors = against_anchor(anchor.steps, before.steps, after.steps)
    for errors in result.errors:
        if errors.alarm is not None:
            return Verdict(DIFFERENT, _further(errors, errors.alarm), explain="verify --runs 5")
    if all(bound is None for bound in result.errors[0].limit):
        return inconclusive("no step has a finite loss to hold to fp32", "verify --steps 48")
    result.notes += _unsteady(result.errors[0])
    delta = largest_deviation(before.steps, after.steps)
    return Verdict(EQUIVALENT, _why_inexact(result, before), delta)


def _further(errors: Errors, step: int) -> str:
    """Say which quantity of after is how far from fp32, and what before allows."""
    value, limit = errors.after[step - 1], errors.limit[step - 1]
    return (
        f"{errors.name} is further from fp32 than before allows, at step {step}: {value:.1e}, and at most {limit:.1e}; "
        "with casts off the programs agree, so that this is a matter of what is cast"
    )


def _unsteady(errors: Errors) -> list[str]:
    """Return what to note where before itself is so far from fp32 that its error allows nearly anything."""
    worst = max((error for error in errors.before if error is not None), default=0.0)
    if worst < UNSTEADY:
        return []
    return [
        f"with casts the loss of before is itself up to {100 * worst:.0f} % from fp32, as a training that has not settled "
        "is, or one that draws random numbers of the type of its activations: this says little about the casts"
    ]


def _why_inexact(result: Result, before: Run) -> str:
    """Say why no equality of bits was to be expected."""
    apex = before.notes.get("apex_amp", {})
    level = str(apex.get("opt_level", ""))
    if level in ("O2", "O3"):
        return (
            f"{apex.get('optimizer', level)} keeps fp16 weights and casts the model; autocast casts operators and "
            "keeps fp32 weights"
        )
    if before.notes.get("scripts"):
        return "functions of torch.jit.script add and multiply in fp32 under autocast, and Apex casts nothing in them"
    named = sorted({row.operator.removesuffix("_backward") for row in result.census or ()})
    if named:
        return f"Apex and autocast run {', '.join(named)} in different dtypes"
    return (
        "both run the operators of the cast lists in the same dtypes; others round differently, such as those on tensors "
        "without dimensions, or what shares one cast"
    )


def enveloped(runner: Runner, result: Result, before: Run, after: Run) -> Verdict:
    """Compare with the spread of runs whose weights were moved by one unit in the last place."""
    ours, theirs = [before.steps], [after.steps]
    scale = result.numeric.first_scale if result.numeric is not None else None
    settled = "" if scale is None else ", settled"
    for kick in range(1, runner.options.runs):
        config = runner.config(casts=True, kick=kick, **calmly(scale))
        repeated = runner.before(f"envelope {kick}{settled}", config)
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
