"""Whether a function runs inside autocast alone, by its calls."""

from __future__ import annotations

import ast
from collections.abc import Set as AbstractSet

from amp_migrate.autocast.evaluated.shared import running_one
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.region import Region


def called_inside(unit: Unit, region: Region, taken: AbstractSet[ast.AST]) -> bool:
    """Tell whether every call of the function of a region stands in nodes that are cast already."""
    calls = running_one(unit.project, region.function)
    return bool(calls) and all(
        call in taken or in_autocast(unit.project, function.module, call)
        for function, call in calls
    )


def only_inside(unit: Unit, region: Region, taken: AbstractSet[ast.AST]) -> bool:
    """Tell the same of a function that no code out of sight may call."""
    inside = called_inside(unit, region, taken)
    return inside and not unit.project.escapes(region.function)
