"""The noise of repeated runs: per-step limits, and a test of equivalence over the whole curve."""

from __future__ import annotations

import math
from dataclasses import dataclass

from amp_migrate.equivalence.comparison.anchor import POOL, Series, first_alarm
from amp_migrate.equivalence.runs.records import Step

WIDTH = 6.0
FLOORS = {"loss": 2.0**-11, "gradient norm": 2.0**-9, "update norm": 1e-3}

# One-sided 95 % points of Student's t for 1, 2, ... degrees of freedom.
_T95 = (
    6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771,
    1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706,
    1.703, 1.701, 1.699, 1.697,
)  # fmt: skip
_T95_LARGE = 1.645


@dataclass(frozen=True)
class Band:
    """One quantity's distance from the mean of the before-runs, and its limit, per step."""

    name: str
    after: tuple[float | None, ...]
    limit: tuple[float | None, ...]
    alarm: int | None


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests on the mean log loss: interval, margin and the smallest provable one."""

    difference: float
    low: float
    high: float
    margin: float
    certifiable: float

    @property
    def answer(self) -> str:
        """EQUIVALENT, DIFFERENT or INCONCLUSIVE."""
        if -self.margin <= self.low and self.high <= self.margin:
            return "EQUIVALENT"
        if self.low > self.margin or self.high < -self.margin:
            return "DIFFERENT"
        return "INCONCLUSIVE"


def _logs(steps: tuple[Step, ...], name: str) -> Series:
    values = []
    for step in steps:
        value = {
            "loss": step.loss,
            "gradient norm": step.grad_norm,
            "update norm": step.update_norm,
        }[name]
        usable = value is not None and value > 0 and math.isfinite(value) and not step.skipped
        values.append(math.log(value) if usable and value is not None else None)
    return values


def bands(
    runs: list[tuple[Step, ...]], after: tuple[Step, ...], coarser: float = 1.0
) -> tuple[Band, ...]:
    """Return, per quantity, whether `after` leaves the envelope of the perturbed before-runs.

    `coarser` is how much wider than that of fp16 the floor has to be.
    """
    return tuple(_band(name, runs, after, coarser) for name in FLOORS)


def _band(name: str, runs: list[tuple[Step, ...]], after: tuple[Step, ...], coarser: float) -> Band:
    ours = [_logs(run, name) for run in runs]
    theirs = _logs(after, name)
    means: Series = []
    squares: list[list[float]] = []
    for index in range(min(len(theirs), *(len(run) for run in ours))):
        held = [value for run in ours if (value := run[index]) is not None]
        mean = sum(held) / len(held) if held else None
        means.append(mean)
        squares.append([(value - mean) ** 2 for value in held] if mean is not None else [])
    distance: Series = [
        None if mean is None or value is None else abs(value - mean)
        for mean, value in zip(means, theirs, strict=False)
    ]
    floor = FLOORS[name] * coarser
    limit: Series = [_limit(squares, index) + floor for index in range(len(distance))]
    return Band(name, tuple(distance), tuple(limit), first_alarm(distance, limit, 1))


def _limit(squares: list[list[float]], index: int) -> float:
    window = [v for step in squares[max(0, index - POOL) : index + POOL + 1] for v in step]
    spread = math.sqrt(sum(window) / len(window)) if window else 0.0
    return WIDTH * spread


def equivalence(
    before: list[tuple[Step, ...]], after: list[tuple[Step, ...]], margin: float
) -> Equivalence:
    """Test that the mean log loss of the second half differs by less than `margin`.

    The runs of each side are one plain run and its perturbed repetitions; at least two a side.
    """
    left = [_late_mean(run) for run in before]
    right = [_late_mean(run) for run in after]
    count = min(len(left), len(right))
    difference = sum(right) / len(right) - sum(left) / len(left)
    freedom = len(left) + len(right) - 2
    variance = (_spread(left) + _spread(right)) / freedom
    error = math.sqrt(variance * (1 / len(left) + 1 / len(right)))
    quantile = _T95[freedom - 1] if freedom <= len(_T95) else _T95_LARGE
    half = quantile * error
    certifiable = 2 * quantile * math.sqrt(variance) * math.sqrt(2 / count)
    return Equivalence(difference, difference - half, difference + half, margin, certifiable)


def _late_mean(steps: tuple[Step, ...]) -> float:
    logs = [value for value in _logs(steps, "loss")[len(steps) // 2 :] if value is not None]
    return sum(logs) / len(logs) if logs else math.nan


def _spread(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)
