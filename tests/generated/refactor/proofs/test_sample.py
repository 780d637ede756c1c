"""A fixed sample of refactored trainings: migrated as their bases are."""

from __future__ import annotations

import pytest

from generated.refactor.judging.hunt import alone_too
from generated.refactor.judging.judge import OUTCOMES
from generated.refactor.judging.saved import Kept, load, thinned
from generated.refactor.judging.variant import Variant
from generated.refactor.refactoring import catalogue

CHUNK = 12
# A base trains once for the variants of a chunk.
SAMPLE = sorted(load(), key=lambda kept: kept.base)


@pytest.mark.parametrize("first", range(0, len(SAMPLE), CHUNK))
def test_variants_are_migrated_as_before(first: int) -> None:
    """No variant fares worse than it is known to; one that fares better must be kept as such.

    `python scripts/fuzz.py --refactor --programs 300 --sample` draws the sample anew.
    """
    kept = SAMPLE[first : first + CHUNK]
    built = [k.build() for k in kept]
    assert [k for k, variant in zip(kept, built, strict=True) if variant is None] == []
    found = alone_too([variant for variant in built if isinstance(variant, Variant)])
    changed = [(k, j) for k, j in zip(kept, found, strict=True) if j.outcome != k.outcome]
    assert changed == []


def test_the_sample_shows_the_refactorings_and_is_mostly_migrated() -> None:
    """It is as small as that allows; nearly all of its variants are migrated."""
    outcomes = [kept.outcome for kept in SAMPLE]
    shown = {name for kept in SAMPLE for name, _ in kept.steps}
    assert len(shown) >= 0.85 * len(catalogue())
    assert set(outcomes) <= set(OUTCOMES)
    assert outcomes.count("same") >= 0.7 * len(outcomes)
    assert all(isinstance(kept, Kept) and 1 <= len(kept.steps) <= 5 for kept in SAMPLE)


def test_a_thinned_sample_keeps_refactorings_and_failures() -> None:
    """What shows nothing new goes, unless it fares worse than its base."""
    rows = (("one", "a", "same"), ("one", "a", "same"), ("two", "b", "left"), ("two", "b", "same"))
    kept = [Kept(base, ((name, seed),), how) for seed, (base, name, how) in enumerate(rows)]
    assert thinned(kept, times=1) == [kept[0], kept[2]]
    assert thinned(kept, times=2) == kept
