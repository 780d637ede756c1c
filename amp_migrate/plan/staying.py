"""How the places of Apex that stay are reported: each once, under the cause that keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Finding, Place, Status
from amp_migrate.plan.refusal import Refusal
from amp_migrate.rules.base import FileContext

UNHANDLED = "AMP909"
_SPOKEN = {
    Kind.LOSS_SCALE: "this use of Apex's loss scale",
    Kind.UNREAD: "this LossScaler",
    Kind.REGISTER: "this registration with Apex",
    Kind.DECORATOR: "this decorator of Apex",
    Kind.LISTED: "this change of Apex's lists",
    Kind.HANDED_ON: "this call of Apex",
    Kind.VALUE: "this use of amp",
    Kind.OTHER_AMP: "this use of amp",
    Kind.OTHER: "this use of Apex",
}
_BY_FILE = (Kind.REGISTER, Kind.DECORATOR, Kind.LISTED, Kind.DISABLE_CASTS, Kind.UNREAD)


def left(found: list[Site], cause: Cannot) -> Iterator[Decision]:
    """Report every site of a unit that is left: the cause where it stands, the others by reference to it."""
    finding = cause.finding()
    hit = False
    for site in found:
        if site.span == finding.span and site.module.path == finding.path:
            hit = True
            yield Decision(finding)
        else:
            yield Decision(_kept(site, finding.code, finding.place))
    if not hit:
        yield Decision(replace(finding, status=Status.NOTE))


def kept_for(found: list[Site], code: str, cause: Place | None) -> Iterator[Decision]:
    """Report the sites that could go by themselves, but serve what is left elsewhere."""
    return (Decision(_kept(site, code, cause)) for site in found)


def refused_sites(sites: list[Site], refusal: Refusal) -> Iterator[Decision]:
    """Report the sites of a file whose own rewrite is not used."""
    for site in sites:
        yield Decision(
            Finding(site.module.path, site.span, refusal.code, Status.LEFT, refusal.reason)
        )


def unspoken(context: FileContext, decisions: list[Decision]) -> Iterator[Decision]:
    """Report the sites of a file that no rule spoke of."""
    said = {d.finding.span for d in decisions}
    for site in context.of(*_BY_FILE):
        if site.span not in said:
            yield Decision(_kept(site, UNHANDLED, context.cause_of(site)))


def holding(decisions: Iterable[Decision]) -> dict[Place, Place]:
    """Return for every place that is left where its cause stands."""
    left_over = (d.finding for d in decisions if d.finding.status is Status.LEFT)
    return {finding.place: finding.cause or finding.place for finding in left_over}


def _kept(site: Site, code: str, cause: Place | None) -> Finding:
    what = _SPOKEN.get(site.kind, site.kind.value)
    why = f"because of {cause}" if cause else "with the Apex code that is left in this project"
    own = cause is not None and (cause.path, cause.span.line) == (site.module.path, site.span.line)
    if own:
        why = "because of what else stands in this line"
    named = (cause,) if cause and not own else ()
    message = f"{what} stays as it is, {why}"
    return Finding(site.module.path, site.span, code, Status.LEFT, message, "", cause, named)
