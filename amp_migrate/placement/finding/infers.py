"""Whether an initialize is for networks that are run and never trained."""

from __future__ import annotations

import ast

from amp_migrate.apex.apart import optimizer_expressions
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project.reach import reachable, upwards


def only_infers(unit: Unit, site: Site) -> bool:
    """Tell whether no optimizer is initialized, and nothing that the programs of an initialize run has a backward."""
    if any(unit.of(Kind.SCALE_LOSS)) or unit.steps:
        return False
    if any(list(optimizer_expressions(other)) for other in unit.of(Kind.INITIALIZE)):
        return False
    starts = upwards(unit.project, site.function)
    run = {function for start in starts for function in reachable(unit.project, start)}
    return not any(
        isinstance(node, ast.Attribute) and node.attr == "backward"
        for function in run
        for node in ast.walk(function.scope)
    )
