"""Everything a verification found, for the reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from amp_migrate.equivalence.comparison.anchor import Errors
from amp_migrate.equivalence.comparison.census import CensusRow
from amp_migrate.equivalence.comparison.coverage import Coverage
from amp_migrate.equivalence.comparison.envelope import Band, Equivalence
from amp_migrate.equivalence.comparison.steps import Comparison, Difference
from amp_migrate.equivalence.comparison.verdict import Verdict, inconclusive
from amp_migrate.equivalence.options import Options
from amp_migrate.equivalence.runs.records import Crash, Run
from amp_migrate.equivalence.runs.timing import TimingRow


@dataclass(frozen=True)
class Level:
    """One pair of runs: "logic" with casts off, "numeric" with casts on.

    Both sides began at `first_scale` where it is one; None: at the loss scale of their own.
    """

    name: str
    before: Run
    after: Run
    comparison: Comparison
    first_scale: float | None = None


@dataclass
class Result:
    """Filled level by level; what stayed None was not run. `held_to` says what decided, in words."""

    options: Options
    verdict: Verdict = field(
        default_factory=lambda: inconclusive("nothing was run", "verify --help")
    )
    logic: Level | None = None
    repeat: Comparison | None = None
    numeric: Level | None = None
    numeric_repeat: Comparison | None = None
    census: tuple[CensusRow, ...] | None = None
    errors: tuple[Errors, ...] = ()
    bands: tuple[Band, ...] = ()
    equivalence: Equivalence | None = None
    timing: tuple[TimingRow, ...] = ()
    gain: str = ""
    coverage: Coverage = field(default_factory=Coverage)
    fixes: tuple[str, ...] = ()
    fixes_differ: bool = False
    fix_check: dict[str, Any] | None = None
    changed: tuple[str, ...] = ()
    held_to: str = ""
    crash: Crash | None = None
    before_label: str = ""
    after_label: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def deciding(self) -> Level | None:
        """The pair of runs that decided: where logic differs that one, else the numeric one."""
        if self.logic is not None and not self.logic.comparison.exact:
            return self.logic
        return self.numeric or self.logic

    @property
    def first(self) -> Difference | None:
        """The first difference, None where none was found or where the level allows some."""
        if self.verdict.word in ("EXACT", "EQUIVALENT") or self.deciding is None:
            return None
        return self.deciding.comparison.first
