"""Losses that a criterion computes of what networks gave."""

from __future__ import annotations

import ast

from amp_migrate.autocast import bce
from amp_migrate.autocast.forwards import Forward
from amp_migrate.autocast.slicing.region import Region
from amp_migrate.facts.paths import defs, uses, walk
from amp_migrate.project import Function, Module
from amp_migrate.unit.unit import Unit

_ASSIGNS = (ast.Assign, ast.AugAssign, ast.AnnAssign)


def criterion(unit: Unit, module: Module, stmt: ast.stmt) -> bool:
    """Tell whether a statement computes a loss by a criterion, not by a helper of the project."""
    return any(
        isinstance(n, ast.Call)
        and not unit.project.callees(n)
        and unit.forwards.call(module, n) >= Forward.CRITERION
        for n in walk(stmt)
    )


def losses_apart(unit: Unit, found: list[Region]) -> list[Region]:
    """Return the losses of what networks gave further up, behind a test that may have run another one."""
    known: dict[Function, set[str]] = {}
    held = set()
    for region in [*unit.regions, *found]:
        for stmt in region.statements():
            known.setdefault(region.function, set()).update(defs(stmt))
            held |= {id(node) for node in ast.walk(stmt)}
    return [
        Region(function.module, function, stmt, stmt)
        for function, names in known.items()
        for stmt in walk(function.scope)
        if isinstance(stmt, _ASSIGNS) and id(stmt) not in held and uses(stmt) & names
        if unit.forwards.strength(function.module, stmt) is Forward.CRITERION
        and not bce.calls(unit, function.module, stmt)
    ]
