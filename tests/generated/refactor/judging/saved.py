"""Variants kept as JSON lines: a base and the refactorings that it is under, with what is expected of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from generated.refactor.bases import base
from generated.refactor.judging.variant import Step, Variant, rebuilt

SAMPLE = Path(__file__).resolve().parents[1] / "sample.jsonl"


@dataclass(frozen=True)
class Kept:
    """A variant by its base and steps, and the outcome that it has."""

    base: str
    steps: tuple[Step, ...]
    outcome: str

    def build(self) -> Variant | None:
        """Build the variant again; None where its refactorings no longer find their places."""
        return rebuilt(base(self.base), self.steps)


def thinned(kept: Sequence[Kept], times: int = 2) -> list[Kept]:
    """Return few variants that have every refactoring so many times where `kept` has, and all that do not fare well.

    Variants of bases that are there anyway come first: a base trains once for all of them.
    """
    chosen = [one for one in kept if one.outcome != "same"]
    rest = [one for one in kept if one.outcome == "same"]
    missing = Counter[str]()
    for one in kept:
        missing.update({name for name, _ in one.steps})
    missing = Counter({name: min(times, count) for name, count in missing.items()})
    for one in chosen:
        missing.subtract({name for name, _ in one.steps})
    while rest:
        bases = {one.base for one in chosen}
        best = max(rest, key=lambda one: (_gained(one, missing), one.base in bases))
        if not _gained(best, missing):
            break
        rest.remove(best)
        chosen.append(best)
        missing.subtract({name for name, _ in best.steps})
    return sorted(chosen, key=lambda one: kept.index(one))


def _gained(one: Kept, missing: Counter[str]) -> int:
    return sum(missing[name] > 0 for name in {name for name, _ in one.steps})


def load(path: Path = SAMPLE) -> list[Kept]:
    """Read kept variants."""
    facts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Kept(f["base"], tuple((n, s) for n, s in f["steps"]), f["outcome"]) for f in facts]


def store(kept: Iterable[Kept], path: Path = SAMPLE) -> None:
    """Write variants, a line each."""
    lines = [
        json.dumps({"outcome": k.outcome, "base": k.base, "steps": [list(s) for s in k.steps]})
        for k in kept
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
