"""Checks many programs: one process to import torch once, forked workers, results as they come."""

from __future__ import annotations

import itertools
import multiprocessing
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from generated.choices.features import draw
from generated.choices.sets import Features
from generated.judging.check import Verdict, check, checked
from generated.written.program import build


@dataclass(slots=True)
class Summary:
    """Counts of outcomes, in all and by feature and option; `pairs` are the combinations of two options."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_option: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    left: dict[str, list[int]] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    pairs: set[tuple[str, str, str, str]] = field(default_factory=set)

    def add(self, seed: int, outcome: str, why: str) -> None:
        """Count one program."""
        f = draw(seed)
        self.outcomes[outcome] += 1
        items = sorted(f.items())
        for item in items:
            self.by_option.setdefault(item, Counter())[outcome] += 1
        self.pairs |= {(*a, *b) for a in items for b in items if a < b}
        if outcome == "left":
            self.left.setdefault(re.sub(r" \(\S+ (AMP\d+)\)", "", why), []).append(seed)
        if outcome == "failed":
            self.failures.append((seed, why))

    def lines(self) -> Iterator[str]:
        """Yield the summary as text, by feature."""
        total = sum(self.outcomes.values()) or 1
        shares = ", ".join(f"{n} {o} ({100 * n / total:.1f} %)" for o, n in self.outcomes.items())
        yield f"{total} programs: {shares}; {len(self.pairs)} pairs of options"
        for (name, option), counts in sorted(self.by_option.items()):
            yield (
                f"  {name + ' ' + option:32} {sum(counts.values()):6} ran"
                f" {counts['left']:5} left {counts['failed']:5} failed"
            )
        for why, seeds in self.left.items():
            yield f"left {len(seeds)}: {why}; seeds {', '.join(map(str, seeds[:5]))}"
        for seed, why in self.failures:
            yield f"failed, seed {seed}: {why}"

    def data(self) -> dict[str, object]:
        """Return the summary as plain data: counts, what was left by reason and by feature, failures."""
        total = sum(self.outcomes.values())
        features: dict[str, dict[str, dict[str, int]]] = {}
        for (name, option), counts in sorted(self.by_option.items()):
            features.setdefault(name, {})[option] = dict(counts)
        return {
            "programs": total,
            "outcomes": dict(self.outcomes),
            "migrated_share": self.outcomes["migrated"] / total if total else 0.0,
            "pairs_of_options": len(self.pairs),
            "left": {why: {"programs": len(s), "seeds": s[:20]} for why, s in self.left.items()},
            "failures": [{"seed": seed, "why": why} for seed, why in self.failures],
            "features": features,
        }


def judged(seeds: Iterable[int], workers: int) -> Iterator[tuple[int, str, str]]:
    """Yield seed, outcome and reason of every program, as they are done."""
    groups = _groups(iter(seeds), 8)
    if workers == 1:
        for group in groups:
            yield from _judge(group)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        waiting = [pool.apply_async(_judge, (group,)) for group in itertools.islice(groups, 8)]
        while waiting:  # not more than these are taken from `seeds` ahead of time
            yield from waiting.pop(0).get()
            waiting += [pool.apply_async(_judge, (group,)) for group in itertools.islice(groups, 1)]


def _groups(seeds: Iterator[int], size: int) -> Iterator[list[int]]:
    while group := list(itertools.islice(seeds, size)):
        yield group


def _judge(seeds: list[int]) -> list[tuple[int, str, str]]:
    """Check the programs of some seeds; one that fails beside others has to fail by itself."""
    found = []
    programs = [build(draw(seed)) for seed in seeds]
    for seed, program, verdict in zip(seeds, programs, checked(programs), strict=True):
        alone = check(program) if verdict.outcome == "failed" else verdict
        if alone.outcome != verdict.outcome:
            alone = Verdict("failed", f"only beside others: {verdict.why}")
        found.append((seed, alone.outcome, alone.why))
    return found


def same_failure(verdict: Verdict) -> Callable[[Features], bool]:
    """Return a function of features: whether their program fails as this one did."""
    wanted = kind(verdict)

    def fails(f: Features) -> bool:
        return kind(check(build(f))) == wanted

    return fails


def kind(verdict: Verdict) -> tuple[str, str]:
    """Return an outcome and its reason without numbers and what follows the first words."""
    words = [word for word in verdict.why.split() if not any(c.isdigit() for c in word)]
    return verdict.outcome, " ".join(words[:4])
