"""The curves that the picture reports draw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amp_migrate.equivalence.comparison.anchor import Series, relative
from amp_migrate.equivalence.result import Level, Result
from amp_migrate.equivalence.runs.records import Step

_CURVES: tuple[tuple[str, Callable[[Step], float | None]], ...] = (
    ("loss", lambda step: step.loss),
    ("gradient norm", lambda step: step.grad_norm),
    ("update norm", lambda step: None if step.skipped else step.update_norm),
    ("loss scale", lambda step: step.scale),
)


@dataclass(frozen=True)
class Panel:
    """One quantity: both curves, their relative deviation, and the limit where one applies.

    All lists run over the compared steps; None where a step was skipped. `what` says what the
    deviation is measured from.
    """

    name: str
    before: Series
    after: Series
    deviation: Series
    limit: Series
    what: str

    @property
    def equal(self) -> bool:
        """Whether both curves are the same in every bit."""
        return self.before == self.after


def panels(result: Result) -> list[Panel]:
    """Return the panels of the level that decided; none where nothing was recorded."""
    level = result.deciding
    if level is None or not level.before.steps or not level.after.steps:
        return []
    return [_panel(result, level, name, read) for name, read in _CURVES]


def _panel(result: Result, level: Level, name: str, read: Callable[[Step], float | None]) -> Panel:
    pairs = list(zip(level.before.steps, level.after.steps, strict=False))
    before: Series = [read(one) for one, _ in pairs]
    after: Series = [read(other) for _, other in pairs]
    for band in result.bands:
        if band.name == name:
            what = "distance from the mean of the runs before"
            return Panel(name, before, after, list(band.after), list(band.limit), what)
    for errors in result.errors:
        if errors.name == name:
            what = "error against fp32"
            return Panel(name, before, after, list(errors.after), list(errors.limit), what)
    deviation = [relative(b, a) for a, b in zip(before, after, strict=True)]
    return Panel(name, before, after, deviation, [], "relative deviation")


def skipped_steps(result: Result) -> list[int]:
    """Return the steps that the program before skipped."""
    level = result.deciding
    return [step.index for step in level.before.steps if step.skipped] if level else []
