"""Judges many variants in forked workers; those of one base come one after the other, as it trains once."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Collection, Iterator, Sequence

from generated.refactor.judging.judge import Judged, judged
from generated.refactor.judging.table import Row
from generated.refactor.judging.variant import Variant, base_name, drawn

_GROUP = 8


def rows(
    seeds: Sequence[int], workers: int, families: Collection[str], only: Collection[str] = ()
) -> Iterator[Row]:
    """Yield what became of the variant of every seed, as they are done."""
    ordered = sorted(seeds, key=lambda seed: (base_name(seed), seed))
    groups = [
        (ordered[k : k + _GROUP], tuple(families), tuple(only))
        for k in range(0, len(ordered), _GROUP)
    ]
    if workers == 1:
        for group in groups:
            yield from _judge(group)
        return
    with multiprocessing.get_context("fork").Pool(workers, maxtasksperchild=60) as pool:
        for found in pool.imap(_judge, groups):
            yield from found


def _judge(group: tuple[list[int], tuple[str, ...], tuple[str, ...]]) -> list[Row]:
    seeds, families, only = group
    variants = [drawn(seed, families, only) for seed in seeds]
    verdicts = alone_too(variants)
    gc.collect()
    return [Row.of(s, v, j) for s, v, j in zip(seeds, variants, verdicts, strict=True)]


def alone_too(variants: Sequence[Variant]) -> list[Judged]:
    """Judge variants together; one that fails so has to fail by itself."""
    found = judged(variants)
    for k, verdict in enumerate(found):
        if verdict.outcome in ("wrong", "invalid"):
            found[k] = judged([variants[k]])[0]
    return found
