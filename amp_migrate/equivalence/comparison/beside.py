"""Judge a training with AMP beside the one in FP32 that it was made of, by what casts alone do to that one."""

from __future__ import annotations

from typing import NamedTuple

from amp_migrate.equivalence.capture.config import CaptureConfig
from amp_migrate.equivalence.comparison import envelope
from amp_migrate.equivalence.comparison.anchor import Errors, against_anchor, largest_deviation
from amp_migrate.equivalence.comparison.complete import OUTPUT
from amp_migrate.equivalence.comparison.verdict import DIFFERENT, EQUIVALENT, Verdict, inconclusive
from amp_migrate.equivalence.result import Result
from amp_migrate.equivalence.runs.records import Run
from amp_migrate.equivalence.runs.runner import Runner

EVERYWHERE = "casts everywhere"
_COARSER = {"float16": 1.0, "bfloat16": 8.0}
_SMALLER = 2.0**-5
_ATTEMPTS = 4


class _Settled(NamedTuple):
    """A run with AMP that skips no step, and the loss scale it began with (None: its own)."""

    run: Run
    scale: float | None


def beside_fp32(runner: Runner, result: Result, before: Run, after: Run) -> Verdict:
    """Compare a training with AMP to `before`, which is in FP32.

    The yardstick is the FP32 program itself, run with casts everywhere: `after` may be three times as far from FP32 as
    that. Several runs a side also give an envelope around the yardstick, and say whether the mean loss is that of FP32.
    """
    dtype = after.notes.get("autocast")
    if dtype is None:
        why = "the command never enters autocast; is AMP off in its arguments?"
        return inconclusive(why, OUTPUT)
    settled = _settled(runner, result, after)
    if settled is None:
        reason = "the GradScaler skips steps however small its scale: a value leaves the range of float16"
        return Verdict(DIFFERENT, reason)
    config = runner.config(everywhere=dtype, first_scale=settled.scale, inject=())
    cast = runner.before(EVERYWHERE, config)
    if cast is None:
        return inconclusive("the import holds no run with casts", "verify --export before.json")
    if cast.failure or len(cast.steps) < len(before.steps):
        why = cast.failure or "it ends early"
        result.notes.append(f"the FP32 program does not run with casts everywhere: {why}")
        reason = f"no run says what {dtype} alone does to this training, so losses are not judged"
        return inconclusive(reason, OUTPUT)
    result.held_to = (
        f"errors against FP32, beside those of the FP32 program with {dtype} everywhere"
    )
    result.errors = against_anchor(before.steps, cast.steps, settled.run.steps)
    alarm = next((errors for errors in result.errors if errors.alarm is not None), None)
    if alarm is not None:
        return Verdict(DIFFERENT, _too_far(alarm, dtype))
    delta = largest_deviation(before.steps, settled.run.steps)
    if runner.options.runs >= 2:
        return _enveloped(runner, result, before, cast, settled, dtype)
    same = all(errors.before == errors.after for errors in result.errors)
    what = "exactly what casts alone make of it" if same else f"as near to FP32 as {dtype} allows"
    return Verdict(EQUIVALENT, f"with AMP the training is {what}", delta)


def ended(runner: Runner, result: Result, after: Run) -> Verdict:
    """Answer for a training with AMP that fails: whether the FP32 program does with casts everywhere, too."""
    result.crash = after.crash
    dtype = after.notes.get("autocast", runner.options.dtype)
    cast = runner.before(EVERYWHERE, runner.config(everywhere=dtype, inject=()))
    if cast is not None and cast.failure == after.failure:
        where = "this CPU" if runner.options.device == "cpu" else "this machine"
        return inconclusive(f"{where} does not run the program in {dtype}: {cast.failure}", OUTPUT)
    return Verdict(DIFFERENT, f"after: {after.failure}", explain=OUTPUT)


def _too_far(errors: Errors, dtype: str) -> str:
    return f"{errors.name} is further from FP32 than {dtype} explains, at step {errors.alarm}"


def _settled(runner: Runner, result: Result, after: Run) -> _Settled | None:
    """Return `after`, or a run of it whose GradScaler begins where it skips nothing; None where there is none."""
    skipped = sum(step.skipped for step in after.steps)
    if not skipped:
        return _Settled(after, None)
    result.notes.append(
        f"GradScaler skipped {skipped} of {len(after.steps)} steps while it looked for its scale; "
        "for the comparison it begins with a smaller one"
    )
    scale = min(step.scale for step in after.steps)
    for _ in range(_ATTEMPTS):
        scale *= _SMALLER
        run = runner.after("numeric, smaller scale", runner.config(first_scale=scale, inject=()))
        if run.steps and not any(step.skipped for step in run.steps):
            return _Settled(run, scale)
    return None


def _enveloped(
    runner: Runner, result: Result, before: Run, cast: Run, settled: _Settled, dtype: str
) -> Verdict:
    """Compare with runs whose weights were moved by one unit in the last place."""
    fp32, casts, amp = [before.steps], [cast.steps], [settled.run.steps]
    for kick in range(1, runner.options.runs):
        config = runner.config(kick=kick, first_scale=settled.scale, inject=())
        for held, run in (
            (fp32, runner.before(f"envelope {kick}", config)),
            (casts, runner.before(f"{EVERYWHERE} {kick}", _cast(runner, kick, settled, dtype))),
            (amp, runner.after(f"envelope {kick}", config)),
        ):
            held += [run.steps] if run is not None else []
    if min(len(fp32), len(casts)) < 2:
        return inconclusive("the import holds no repeated runs", "verify --export before.json")
    result.held_to = f"{result.held_to}; envelope and mean loss of {len(fp32)} runs"
    result.bands = envelope.bands(casts, settled.run.steps, _COARSER[dtype])
    tested = envelope.equivalence(fp32, amp, runner.options.margin)
    result.equivalence = tested
    for band in result.bands:
        if band.alarm is not None:
            reason = f"{band.name} leaves the noise of a training in {dtype} at step {band.alarm}"
            return Verdict(DIFFERENT, reason)
    said = f"mean log loss differs from FP32 by {tested.difference:.2g}, margin {tested.margin:g}"
    if tested.answer == DIFFERENT:
        return Verdict(DIFFERENT, said)
    if tested.answer != EQUIVALENT:
        return inconclusive(said, f"verify --runs {2 * runner.options.runs}")
    within = max(abs(tested.low), abs(tested.high))
    return Verdict(EQUIVALENT, f"over {len(fp32)} runs the mean loss is that of FP32", within)


def _cast(runner: Runner, kick: int, settled: _Settled, dtype: str) -> CaptureConfig:
    return runner.config(everywhere=dtype, first_scale=settled.scale, kick=kick, inject=())
