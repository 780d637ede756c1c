"""Makes a failing program as small as it can be while it still fails."""

from __future__ import annotations

from collections.abc import Callable

from generated.choices.features import OPTIONS, simplest
from generated.choices.sets import Features
from generated.choices.settle import settled
from generated.written.program import build


def shrunk(f: Features, fails: Callable[[Features], bool]) -> Features:
    """Return the features with as many as possible at their simplest option, still failing.

    `fails` tells whether the program of some features fails in the same way.
    """
    current = f
    again = True
    while again:
        again = False
        for name in OPTIONS:
            if current[name] == simplest(name):
                continue
            candidate = settled({**current, name: simplest(name)})
            if size(candidate) < size(current) and fails(candidate):
                current, again = candidate, True
    return current


def size(f: Features) -> int:
    """Return how far features are from the simplest ones, then how long their program is."""
    away = sum(f[name] != simplest(name) for name in OPTIONS)
    return away * 100_000 + sum(len(data) for data in build(f).files.values())
