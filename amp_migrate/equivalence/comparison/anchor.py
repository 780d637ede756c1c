"""Judge two runs that cannot agree in every bit by a third one in fp32."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from amp_migrate.equivalence.runs.records import Step

POOL = 5
Series = list[float | None]


@dataclass(frozen=True)
class Curve:
    """A quantity to follow: how to read it, how much worse than before it may be.

    `alone` is how many times its limit a step must pass that no other does near it, as one batch may be far off by chance.
    """

    name: str
    read: Callable[[Step], float | None]
    multiplier: float
    floor: float
    consecutive: int = 1
    alone: float = 1.0


CURVES = (
    Curve("loss", lambda step: step.loss, 3.0, 2e-5, alone=2.0),
    Curve("gradient norm", lambda step: step.grad_norm, 3.0, 2e-4, consecutive=2),
    Curve("update norm", lambda step: step.update_norm, 3.0, 1e-3, alone=2.0),
)


@dataclass(frozen=True)
class Errors:
    """Relative errors of one quantity against fp32, and the limit per step; None: not compared."""

    name: str
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]
    limit: tuple[float | None, ...]
    alarm: int | None


def relative(value: float | None, reference: float | None) -> float | None:
    """Return |log(value / reference)|, the relative error of small errors; None without both. NaN is like NaN."""
    if value is None or reference is None:
        return None
    if value == reference or (math.isnan(value) and math.isnan(reference)):
        return 0.0
    if value <= 0 or reference <= 0 or not math.isfinite(value) or not math.isfinite(reference):
        size = max(abs(value), abs(reference))
        return abs(value - reference) / size if math.isfinite(size) and size else math.inf
    return abs(math.log(value / reference))


def pooled(values: Series, index: int) -> float:
    """Return the root mean square of `values` around `index`, `POOL` steps to either side."""
    window = [v for v in values[max(0, index - POOL) : index + POOL + 1] if v is not None]
    return math.sqrt(sum(v * v for v in window) / len(window)) if window else 0.0


def against_anchor(
    anchor: tuple[Step, ...], before: tuple[Step, ...], after: tuple[Step, ...]
) -> tuple[Errors, ...]:
    """Compare the errors of `before` and `after` against the fp32 run, quantity by quantity.

    ``error(after) <= multiplier * pooled error(before) + floor``; the gradient norm must break
    the limit in two consecutive steps, the others by far or twice within `POOL` steps. Left out are steps that any of the three skipped, and those for which `before` or
    the fp32 run has no finite value, as nothing can be held to that.
    """
    count = min(len(anchor), len(before), len(after))
    return tuple(_errors(curve, anchor[:count], before[:count], after[:count]) for curve in CURVES)


def _errors(
    curve: Curve, anchor: tuple[Step, ...], before: tuple[Step, ...], after: tuple[Step, ...]
) -> Errors:
    ours: Series = []
    theirs: Series = []
    for reference, one, other in zip(anchor, before, after, strict=True):
        usable = not (reference.skipped or one.skipped or other.skipped)
        truth = curve.read(reference) if usable and _is_finite(curve.read(one)) else None
        truth = truth if _is_finite(truth) else None
        ours.append(relative(curve.read(one), truth))
        theirs.append(relative(curve.read(other), truth))
    limit: Series = [
        None if value is None else curve.multiplier * pooled(ours, index) + curve.floor
        for index, value in enumerate(ours)
    ]
    return Errors(
        curve.name,
        tuple(ours),
        tuple(theirs),
        tuple(limit),
        first_alarm(theirs, limit, curve.consecutive, curve.alone),
    )


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def first_alarm(
    values: Series, limit: Series, consecutive: int = 1, alone: float = 1.0
) -> int | None:
    """Return the step (from 1) that completes `consecutive` values above the limit, or None.

    A value that has none above its limit at most `POOL` steps before it must be `alone` times as high.
    """
    streak, last = 0, -math.inf
    for index, (value, bound) in enumerate(zip(values, limit, strict=True)):
        if value is None or bound is None:
            continue
        streak = streak + 1 if value > bound else 0
        if not streak:
            continue
        near, last = index - last <= POOL, index
        if streak >= consecutive and (near or value > alone * bound):
            return index + 1
    return None


def largest_deviation(before: tuple[Step, ...], after: tuple[Step, ...]) -> float:
    """Return the largest relative deviation of the loss between two runs."""
    deviations = [relative(other.loss, one.loss) for one, other in zip(before, after, strict=False)]
    return max((value for value in deviations if value is not None), default=0.0)
