"""Variants kept as JSON lines: a base and the refactorings that it is under, with what is expected of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
