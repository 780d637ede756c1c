"""Counts what became of variants: by family, by pair of families, by refactoring, by size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from generated.refactor.judging.judge import OUTCOMES, Judged, kind
from generated.refactor.judging.variant import Step, Variant
from generated.refactor.refactoring import catalogue

_UNCOUNTED = ("invalid", "unfit")
_WRONG = ("crash", "broken", "wrong", "claimed")


@dataclass(frozen=True)
class Row:
    """One variant and what became of it; `size` is the length of its text."""

    seed: int
    base: str
    steps: tuple[Step, ...]
    outcome: str
    why: str
    size: int

    @staticmethod
    def of(seed: int, variant: Variant, verdict: Judged) -> Row:
        """Return the row of a variant."""
        size = len(variant.project.text)
        return Row(seed, variant.base.name, variant.steps, verdict.outcome, verdict.why, size)

    @property
    def refactorings(self) -> set[str]:
        """The names of its refactorings."""
        return {name for name, _ in self.steps}

    @property
    def families(self) -> set[str]:
        """The families of its refactorings."""
        return {catalogue()[name].family for name in self.refactorings}

    @property
    def weight(self) -> tuple[int, int]:
        """How large it is as an example."""
        return len(self.steps), self.size


@dataclass
class Count:
    """How many variants had which outcome, and the smallest that is wrong and that is left."""

    outcomes: Counter[str] = field(default_factory=Counter)
    smallest: dict[str, Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Count a variant."""
        self.outcomes[row.outcome] += 1
        group = "wrong" if row.outcome in _WRONG else row.outcome
        if group not in self.smallest or row.weight < self.smallest[group].weight:
            self.smallest[group] = row

    @property
    def variants(self) -> int:
        """How many trained as their base before the migration."""
        return sum(n for outcome, n in self.outcomes.items() if outcome not in _UNCOUNTED)

    @property
    def wrong(self) -> int:
        """How many crashed, came out broken, or train otherwise."""
        return sum(self.outcomes[outcome] for outcome in _WRONG)

    @property
    def badness(self) -> tuple[float, float]:
        """Shares of wrong and of left variants."""
        whole = self.variants or 1
        return self.wrong / whole, self.outcomes["left"] / whole

    def cells(self) -> tuple[str, ...]:
        """Return variants, wrong, left, ugly and same, and the seeds of the smallest wrong and left."""
        whole = self.variants or 1
        shares = [
            f"{n} ({100 * n / whole:.1f} %)"
            for n in (self.wrong, self.outcomes["left"], self.outcomes["ugly"])
        ]
        seeds = [
            str(self.smallest[k].seed) if k in self.smallest else "" for k in ("wrong", "left")
        ]
        return str(self.variants), *shares, *seeds


HEAD = ("variants", "wrong", "left", "ugly", "smallest wrong", "smallest left")


class Table:
    """The counts of a run."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = []
        self.whole = Count()
        self.families: dict[str, Count] = {}
        self.pairs: dict[str, Count] = {}
        self.alone: dict[str, Count] = {}
        self.refactorings: dict[str, Count] = {}
        self.sizes: dict[str, Count] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Count a variant wherever it belongs."""
        self.rows.append(row)
        self.whole.add(row)
        if row.steps:
            self.sizes.setdefault(f"{len(row.steps)} refactorings", Count()).add(row)
        for family in row.families:
            self.families.setdefault(family, Count()).add(row)
        for pair in combinations(sorted(row.families), 2):
            self.pairs.setdefault(" + ".join(pair), Count()).add(row)
        for name in row.refactorings:
            self.refactorings.setdefault(name, Count()).add(row)
            if len(row.refactorings) == 1:
                self.alone.setdefault(name, Count()).add(row)

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        counts = ", ".join(f"{self.whole.outcomes[o]} {o}" for o in OUTCOMES)
        yield f"{len(self.rows)} variants were drawn: {counts}."
        yield ""
        yield from _table("family", self.families, self.whole)
        yield from _table("pair of families", self.pairs)
        yield from _table("number of refactorings", self.sizes)
        yield from _table("one refactoring alone", self.alone)

    def kinds(self) -> list[tuple[int, tuple[str, str], Row]]:
        """Return the kinds of failure, commonest first, each with its smallest example."""
        found: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if row.outcome in (*_WRONG, "left"):
                found.setdefault(kind(Judged(row.outcome, row.why)), []).append(row)
        sized = [(len(r), k, min(r, key=lambda row: row.weight)) for k, r in found.items()]
        return sorted(sized, key=lambda item: (-item[0], item[1]))


def _table(title: str, counts: Mapping[str, Count], whole: Count | None = None) -> Iterator[str]:
    if not counts:
        return
    yield f"| {title} | " + " | ".join(HEAD) + " |"
    yield "|---|" + "--:|" * len(HEAD)
    for name, count in sorted(counts.items(), key=lambda item: item[1].badness, reverse=True):
        yield f"| {name} | " + " | ".join(count.cells()) + " |"
    if whole:
        yield "| **all** | " + " | ".join(whole.cells()) + " |"
    yield ""
