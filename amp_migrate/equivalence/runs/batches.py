"""Look for the largest batch that fits, with as few attempts as possible: each is a launch of the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from amp_migrate.equivalence.runs.records import Run

GRAIN = 8
"""Batches are told apart by an eighth of their size: a finer answer costs launches and says no more."""


@dataclass(frozen=True)
class Fit:
    """The largest batch of a side with the run that was measured there, and what to say of it."""

    run: Run | None
    batch: int | None
    said: str


def largest(fits: Callable[[int], bool], first: int, most: int | None = None) -> int:
    """Return the largest batch size, within an eighth, that `fits` says yes to; `first` is known to fit.

    `most` is the number of samples there are, more of which no batch can hold. `fits` is asked for each size once.
    """
    good, bad = first, None
    while bad is None:
        size = good * 2 if most is None else min(good * 2, most)
        if size <= good:
            return good
        if fits(size):
            good = size
        else:
            bad = size
    while bad - good > max(1, good // GRAIN):
        size = _between(good, bad)
        if fits(size):
            good = size
        else:
            bad = size
    return good


def _between(good: int, bad: int) -> int:
    """Return a size in the middle, a multiple of 8 where there is one: tensor cores want it."""
    middle = (good + bad) // 2
    even = middle - middle % 8
    return even if good < even else middle
