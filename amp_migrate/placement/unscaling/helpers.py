"""Functions that only clip, and leave it to their callers to unscale."""

from __future__ import annotations

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.indirect import indirect
from amp_migrate.project import Function


def clip_helpers(unit: Unit) -> set[Function]:
    """Return the functions that only clip, and what calls them in between: `unscale_` stands before the calls of those that step, or run the backward."""
    found = set[Function]()
    for function in {site.function for site in unit.of(Kind.MASTER_PARAMS)} - unit.training:
        between = set[Function]()
        if _only_clips(unit, function, between):
            found |= between
    return found


def _only_clips(unit: Unit, function: Function, between: set[Function]) -> bool:
    """Tell whether a function takes no step, and runs for functions alone that do, or run a backward; `between` gets those on the way."""
    calls = unit.project.calls_of(function)
    if not calls or indirect(unit, function) or any(unit.project.escapes(function)):
        return False
    between.add(function)
    return all(
        caller in between
        or bool(unit.steps_of(caller) or unit.backwards_of(caller) or indirect(unit, caller))
        or (caller not in unit.training and _only_clips(unit, caller, between))
        for caller in {call.function for call in calls}
    )
