"""Whether a function runs inside autocast alone, by its calls."""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from amp_migrate.autocast.evaluated.shared import running_one
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.region import Region


def called_inside(unit: Unit, region: Region, taken: AbstractSet[ast.AST]) -> bool:
    """Tell whether every call of the function of a region stands in nodes that are cast already, or runs in such alone."""
    seen = {region.function}
    queue = [region.function]
    while queue:
        around = _around(unit, queue.pop(), taken)
        if around is None or not all(_is_in_sight(unit, holder) for holder in around - seen):
            return False
        queue += around - seen
        seen |= around
    return True


def _around(unit: Unit, function: Function, taken: AbstractSet[ast.AST]) -> set[Function] | None:
    """Return the functions with calls of another one that are not cast where they stand; None where nothing calls it."""
    calls = [
        *running_one(unit.project, function),
        *program_of(unit.project).calls.sites(function),
    ]
    if not calls:
        return None
    return {
        holder
        for holder, call in calls
        if call not in taken and not in_autocast(unit.project, holder.module, call)
    }


def _is_in_sight(unit: Unit, function: Function) -> bool:
    """Tell whether no code out of sight may call a function: the `forward` of a network runs where that is called."""
    return all(by is function for by, _, _ in unit.project.escapes(function))


def only_inside(unit: Unit, region: Region, taken: AbstractSet[ast.AST]) -> bool:
    """Tell the same of a function that no code out of sight may call."""
    inside = called_inside(unit, region, taken)
    return inside and _is_in_sight(unit, region.function)
