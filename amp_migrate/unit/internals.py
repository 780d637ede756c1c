"""How a program uses `amp._amp_state.loss_scalers`."""

from __future__ import annotations

import ast
import re

from amp_migrate.unit.order import dominates
from amp_migrate.unit.sites import Kind, Site
from amp_migrate.unit.unit import Unit

_SCALE = re.compile(r"_amp_state\.loss_scalers\[[^\]]*\]\._?loss_scale(\(\))?$")


def read(site: Site) -> str | None:
    """Return "get" or "set" for a use of the loss scale; None for any other use of the private state."""
    text = ast.unparse(site.node)
    if not _SCALE.search(text):
        return None
    parent = site.module.tree.parent(site.node)
    if isinstance(parent, ast.Assign) and site.node in parent.targets:
        return "set" if len(parent.targets) == 1 else None
    if isinstance(parent, ast.AugAssign):
        return None
    return "get"


def initial_scale(unit: Unit, site: Site) -> str | None:
    """Return the value that an assignment straight after an initialize gives the loss scale."""
    if read(site) != "set":
        return None
    stmt = site.statement
    tree = site.module.tree
    for init in unit.of(Kind.INITIALIZE):
        if init.module is site.module and init.function is site.function:
            close = tree.block(init.statement) is tree.block(stmt)
            if close and dominates(tree, init.statement, stmt) and isinstance(stmt, ast.Assign):
                return tree.segment(stmt.value)
    return None
