"""Programs that hold native AMP beside Apex and choose between them: the way through Apex goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.availability import Availability
from amp_migrate.dual.cut import Cut, Given
from amp_migrate.dual.engines import engine
from amp_migrate.dual.fallback import fallback
from amp_migrate.dual.mixed import not_apart, refuse_doubled
from amp_migrate.dual.native import beside_native, holds_native
from amp_migrate.dual.tried import tried
from amp_migrate.dual.twins import chosen_beside_native, with_twins
from amp_migrate.dual.unreachable import unreachable
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Module, Project


def without_apex(
    project: Project,
    availability: Mapping[Module, Availability],
    found: list[Site],
    everywhere: Iterable[Site],
) -> Cut | None:
    """Return what goes from a unit whose program has a way without Apex; None for one that has to be migrated.

    Raises `Cannot` where both are there and it is not clear which of them runs when.
    """
    given = Given(project, availability, found, list(everywhere))
    gone = fallback(given) or tried(given) or engine(given)
    if gone is not None:
        return gone
    modules = dict.fromkeys(site.module for site in found)
    chosen = _chooses(project, found)
    if not chosen and not any(holds_native(project, module) for module in modules):
        return None
    if any(beside_native(project, site) is not None for site in found):
        gone = unreachable(given)
        if gone is None:
            raise not_apart(project, availability, found)
        return gone
    chosen = chosen or bool(with_twins(project, found))
    if chosen and (gone := unreachable(given)) is not None:
        return gone
    try:
        refuse_doubled(project, found)
    except Cannot:
        gone = unreachable(given)
        if gone is None:
            raise
    return gone


def _chooses(project: Project, found: list[Site]) -> bool:
    """Tell whether a unit without a training initializes only where its program has chosen Apex beside native AMP."""
    initialized = [s for s in found if s.kind is Kind.INITIALIZE]
    trains = any(s.kind is Kind.SCALE_LOSS for s in found)
    alone = bool(initialized) and not trains
    return alone and all(chosen_beside_native(project, s) for s in initialized)
