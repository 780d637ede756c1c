"""Whether objects that initialize train beside each other, where Apex had one loss scale for all of them."""

from __future__ import annotations

import ast
from itertools import permutations

from amp_migrate.facts.paths import path
from amp_migrate.modules.model import CallSite
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.creation import Creation
from amp_migrate.project.rounds import may_follow

_GATHERED = (ast.List, ast.Tuple, ast.Dict)


def are_together(unit: Unit, creation: Creation) -> bool:
    """Tell whether one object whose constructor makes the GradScaler trains while another one is there."""
    function = creation.site.function
    made = function.cls.method("__init__") if function.cls is not None else None
    if made is None or not creation.in_constructor or unit.home.module_level:
        return False
    sites = [s for s in unit.project.callers(made) if s.constructor]
    return any(_is_repeated(site) for site in sites) or any(
        _are_held(unit, one, other) for one, other in permutations(sites, 2)
    )


def _is_repeated(site: CallSite) -> bool:
    """Tell whether one call fills a list with objects."""
    return isinstance(site.function.module.tree.parent(site.call), ast.ListComp | ast.DictComp)


def _are_held(unit: Unit, one: CallSite, other: CallSite) -> bool:
    """Tell whether an object is used, or kept, where another one is made later in the function."""
    function, tree = one.function, one.function.module.tree
    if other.function is not function or not may_follow(
        unit.project, function, one.call, other.call
    ):
        return False
    above = tree.parent(one.call)
    if isinstance(above, _GATHERED) and above is tree.parent(other.call):
        return True
    first, second = _held(above), _held(tree.parent(other.call))
    if first is None or second is None or first == second:
        return False
    if "." in first:
        return "." in second
    return any(
        may_follow(unit.project, function, other.call, node)
        for node in function.own_nodes
        if isinstance(node, ast.Name) and node.id == first and isinstance(node.ctx, ast.Load)
    )


def _held(statement: ast.AST | None) -> str | None:
    """Return the variable or attribute that a statement sets."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return path(statement.targets[0])
    return None
