"""One unit as the plan shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from amp_migrate.apex.sites import Site
from amp_migrate.plan.model import Decision


@dataclass(frozen=True, slots=True)
class Role:
    """What one Apex site is in its unit."""

    file: str
    line: int
    function: str
    role: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What was decided about one place, by which rule."""

    file: str
    line: int
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class UnitSummary:
    """One unit as `--show-plan` shows it; `refused` says why it is left, if it is."""

    files: list[str]
    roles: list[Role]
    decisions: list[Choice]
    refused: str = ""

    def describe(self) -> dict[str, object]:
        """Return the unit as plain data."""
        return asdict(self)


def summary(sites: Sequence[Site], decisions: Sequence[Decision], refused: str) -> UnitSummary:
    """Return what `--show-plan` says about the sites and decisions of a unit."""
    named = [site.module.path for site in sites]
    edited = [path for decision in decisions for path, _ in decision.edits]
    roles = [
        Role(site.module.path, site.span.line, site.function.qualname, site.kind.value)
        for site in sites
    ]
    findings = [decision.finding for decision in decisions]
    choices = [Choice(f.path, f.span.line, f.code, f.message) for f in findings]
    return UnitSummary(list(dict.fromkeys([*named, *edited])), roles, choices, refused)
