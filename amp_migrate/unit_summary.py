"""One unit as the plan shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amp_migrate.plan import Decision
from amp_migrate.unit.sites import Site

if TYPE_CHECKING:
    from amp_migrate.engine import UnitSummary


def summary(found: list[Site], decisions: list[Decision], reason: str) -> UnitSummary:
    """Return what `--show-plan` says about a unit; `reason` is why it is left, if it is."""
    from amp_migrate.engine import UnitSummary

    files = list(
        dict.fromkeys(
            [*(s.module.path for s in found), *(p for d in decisions for p, _ in d.edits)]
        )
    )
    roles = [
        {
            "file": s.module.path,
            "line": str(s.span.line),
            "function": s.function.qualname,
            "role": s.kind.value,
        }
        for s in found
    ]
    made = [
        {
            "file": d.finding.path,
            "line": str(d.finding.span.line),
            "code": d.finding.code,
            "why": d.finding.message,
        }
        for d in decisions
    ]
    return UnitSummary(files, roles, made, reason)
