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
    return _is_inside(unit, region.function, taken, frozenset())


def _is_inside(
    unit: Unit, function: Function, taken: AbstractSet[ast.AST], above: frozenset[Function]
) -> bool:
    calls = [
        *running_one(unit.project, function),
        *program_of(unit.project).calls.sites(function),
    ]
    return bool(calls) and all(
        call in taken
        or in_autocast(unit.project, holder.module, call)
        or _runs_inside(unit, holder, taken, above | {function})
        for holder, call in calls
    )


def _runs_inside(
    unit: Unit, function: Function, taken: AbstractSet[ast.AST], above: frozenset[Function]
) -> bool:
    """Tell whether a function runs in such nodes alone, whatever calls it."""
    if function in above:
        return True
    return _is_in_sight(unit, function) and _is_inside(unit, function, taken, above)


def _is_in_sight(unit: Unit, function: Function) -> bool:
    """Tell whether no code out of sight may call a function: the `forward` of a network runs where that is called."""
    return all(by is function for by, _, _ in unit.project.escapes(function))


def only_inside(unit: Unit, region: Region, taken: AbstractSet[ast.AST]) -> bool:
    """Tell the same of a function that no code out of sight may call."""
    inside = called_inside(unit, region, taken)
    return inside and _is_in_sight(unit, region.function)
