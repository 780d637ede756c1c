"""What a run over sources gives: the outcome of each file, the plan that led to it, and the count."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amp_migrate.plan.model import Finding, Plan, Status
from amp_migrate.source.file import Source

if TYPE_CHECKING:
    from amp_migrate.plan.refusal import Refusal
    from amp_migrate.plan.unit_summary import UnitSummary
    from amp_migrate.project import Project
    from amp_migrate.report import Compared


class Phase(enum.Enum):
    """What is done with the files of a group, as a user is told while it lasts."""

    MIGRATING = "migrating"
    AGAIN = "checking that a second run changes nothing"


Phases = Callable[[Phase, int], None]
"""Takes a phase as it begins, and how many files it concerns."""
Beyond = Callable[[Collection[str]], Sequence[Source] | None]
"""Gives all sources with those that import some files, which a plan edits; None where they are read already."""


class Unread(Exception):
    """A plan edits files that others import, which are not among the sources: all of them are."""

    def __init__(self, sources: Sequence[Source]) -> None:
        super().__init__("a plan edits what files out of sight import")
        self.sources = sources


@dataclass(slots=True)
class Outcome:
    """What became of one file: `after` is its new text with ``\\n`` newlines, None where it is unchanged.

    `failed` says why a file that uses Apex could not be read or its rewrite was refused; `doubted` what the check
    says against a new text that nothing else was found for.
    """

    path: str
    before: Source
    after: str | None = None
    findings: list[Finding] = field(default_factory=list)
    failed: str | None = None
    doubted: str | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """Apex uses and mistakes found, and what became of them; the parts add up."""

    found: int
    migrated: int
    fixed: int
    left: int


@dataclass(slots=True)
class Read:
    """What the check of one run leaves for a second one over its texts.

    `project` is that of the texts which passed last; `refused` says why new texts of files were not used, by path, old
    and new text. `elsewhere` tells whether files that never meet these call ``amp.initialize``.
    """

    project: Project | None = None
    refused: dict[tuple[str, str, str], Refusal] = field(default_factory=dict)
    elsewhere: bool = False


@dataclass(slots=True)
class Result:
    """The outcome of a run over all sources, with the plan that led to it and the events that were compared.

    `unstable`: the files that a second run would change again, where that was asked.
    """

    outcomes: list[Outcome]
    plan: Plan
    units: list[UnitSummary] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    read: Read = field(default_factory=Read, repr=False)
    unstable: list[str] = field(default_factory=list)

    @property
    def tally(self) -> Tally:
        """Count what was found."""
        counts = dict.fromkeys(Status, 0)
        for outcome in self.outcomes:
            for finding in outcome.findings:
                counts[finding.status] += 1
        migrated, fixed, left = (counts[s] for s in (Status.MIGRATED, Status.FIXED, Status.LEFT))
        return Tally(migrated + fixed + left, migrated, fixed, left)


def joined(outcomes: dict[str, Outcome], parts: Sequence[Result]) -> Result:
    """Return the result over all sources, of which some were migrated part by part."""
    became = outcomes | {outcome.path: outcome for part in parts for outcome in part.outcomes}
    return Result(
        list(became.values()),
        Plan([decision for part in parts for decision in part.plan.decisions]),
        [unit for part in parts for unit in part.units],
        sorted((c for part in parts for c in part.compared), key=lambda c: (c.path, c.function)),
        unstable=[path for part in parts for path in part.unstable],
    )
