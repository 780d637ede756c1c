"""How the sites of Apex that stay are reported."""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan import Decision, Finding, Status
from amp_migrate.rules.base import FileContext
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.sites import Kind, Site

UNHANDLED = "AMP909"


def left(found: list[Site], cause: Cannot) -> Iterator[Decision]:
    """Report every site of a unit that is left: the cause where it stands, the others by reference to it."""
    finding = cause.finding()
    hit = False
    for site in found:
        if site.span == finding.span and site.module.path == finding.path:
            hit = True
            yield Decision(finding)
            continue
        where = f"{finding.path}:{finding.span.line}"
        message = f"{site.kind.value} is left as it is, since its unit cannot be migrated ({where} {finding.code})"
        yield Decision(Finding(site.module.path, site.span, finding.code, Status.LEFT, message))
    if not hit:
        yield Decision(
            Finding(
                finding.path,
                finding.span,
                finding.code,
                Status.NOTE,
                finding.message,
                finding.advice,
            )
        )


def refused_sites(sites: list[Site], reason: str) -> Iterator[Decision]:
    """Report the sites of a file whose own rewrite failed its check."""
    for site in sites:
        yield Decision(Finding(site.module.path, site.span, "AMP910", Status.LEFT, reason))


def unspoken(context: FileContext, decisions: list[Decision]) -> Iterator[Decision]:
    """Report the sites of a file that no rule spoke of."""
    said = {d.finding.span for d in decisions}
    for site in context.of(Kind.REGISTER, Kind.DECORATOR, Kind.DISABLE_CASTS, Kind.UNREAD):
        if site.span not in said:
            message = f"{site.kind.value} stays with the Apex code of this project that is left"
            yield Decision(Finding(site.module.path, site.span, UNHANDLED, Status.LEFT, message))
