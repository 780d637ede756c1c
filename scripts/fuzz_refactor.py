"""The hunt over refactored trainings: draws variants, counts what became of them, shrinks what failed."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from generated.refactor.judging.hunt import rows
from generated.refactor.judging.judge import Judged, judged
from generated.refactor.judging.saved import Kept, store, thinned
from generated.refactor.judging.shrink import shrunk
from generated.refactor.judging.table import Row, Table
from generated.refactor.judging.variant import Variant, drawn
from generated.refactor.refactoring import FAMILIES

_CHUNK = 800


@dataclass(frozen=True)
class Hunt:
    """What to draw: `variants` from `seed` on, for at most so many minutes, of some families or refactorings."""

    seed: int
    variants: int
    minutes: float | None
    workers: int
    families: tuple[str, ...]
    only: tuple[str, ...]

    def chosen(self) -> tuple[str, ...]:
        """The families to draw from."""
        return self.families or FAMILIES


def hunt(plan: Hunt, rows_file: Path | None = None) -> Table:
    """Judge the variants of a plan and count them; `rows_file` gets a JSON line for each."""
    table = Table()
    start = time.monotonic()
    for chunk in _chunks(plan, start):
        for row in rows(chunk, plan.workers, plan.chosen(), plan.only):
            table.add(row)
            if rows_file:
                with rows_file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(asdict(row)) + "\n")
            if len(table.rows) % 100 == 0:
                minutes = (time.monotonic() - start) / 60
                counts = dict(table.whole.outcomes)
                print(f"{len(table.rows)} variants, {minutes:.1f} min, {counts}", file=sys.stderr)
    return table


def _chunks(plan: Hunt, start: float) -> Iterator[list[int]]:
    first = plan.seed
    last = plan.seed + plan.variants if plan.variants else sys.maxsize
    for begin in itertools.count(first, _CHUNK):
        if begin >= last or (plan.minutes and time.monotonic() - start > 60 * plan.minutes):
            return
        yield list(range(begin, min(begin + _CHUNK, last)))


def read(path: Path) -> Table:
    """Return the table of rows that were written before."""
    facts = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return Table(Row(**f | {"steps": tuple((n, s) for n, s in f["steps"])}) for f in facts)


def report(table: Table, plan: Hunt, shrink: int) -> Iterator[str]:
    """Yield the tables as Markdown, then the commonest kinds of failure, the first few made small."""
    yield from table.markdown()
    for k, (number, (outcome, reason), row) in enumerate(table.kinds()):
        yield f"{number} {outcome}: {reason} (seed {row.seed}, {row.base}: {_steps(row.steps)})"
        if k < shrink:
            yield from _small(row, plan)


def _small(row: Row, plan: Hunt) -> Iterator[str]:
    variant = drawn(row.seed, plan.chosen(), plan.only)
    small = shrunk(variant, Judged(row.outcome, row.why))
    yield f"shrunk to {_steps(small.steps)} of {small.base.name}: {judged([small])[0].why}"
    yield from _text(small)


def show(plan: Hunt) -> Iterator[str]:
    """Yield the text of the variant of the plan's seed, and what becomes of it."""
    variant = drawn(plan.seed, plan.chosen(), plan.only)
    verdict = judged([variant])[0]
    yield f"{variant.base.name}: {_steps(variant.steps)}"
    yield from _text(variant)
    yield f"{verdict.outcome}: {verdict.why}"


def _text(variant: Variant) -> Iterator[str]:
    for path, text in variant.project.files.items():
        yield f"--- {path}"
        yield text


def _steps(steps: tuple[tuple[str, int], ...]) -> str:
    return "; ".join(f"{name} ({seed})" for name, seed in steps)


def sample(table: Table) -> int:
    """Keep judged variants of a run, as many as show every refactoring, as the fixed sample; return how many."""
    judged = [
        Kept(row.base, row.steps, row.outcome)
        for row in sorted(table.rows, key=lambda row: row.seed)
        if row.outcome not in ("invalid", "unfit")
    ]
    kept = thinned(judged)
    store(sorted(kept, key=lambda k: k.base))
    return len(kept)
