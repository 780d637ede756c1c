"""Whether an initialize is for networks that are run and never trained."""

from __future__ import annotations

import ast

from amp_migrate.apex.apart import optimizer_expressions
from amp_migrate.apex.sites import Kind, Site
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project.reach import run_around


def only_infers(unit: Unit, site: Site) -> bool:
    """Tell whether no optimizer is initialized, and nothing that the programs of an initialize run has a backward."""
    if any(unit.of(Kind.SCALE_LOSS)) or unit.steps:
        return False
    if any(list(optimizer_expressions(other)) for other in unit.of(Kind.INITIALIZE)):
        return False
    return not any(
        isinstance(node, ast.Attribute) and node.attr == "backward"
        for function in run_around(unit.project, site.function)
        for node in function.all_nodes
    )
