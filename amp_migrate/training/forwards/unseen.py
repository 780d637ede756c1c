"""Code out of sight that evaluates a network it is given, by what it is called."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import tail
from amp_migrate.project import Module, Project
from amp_migrate.training.beliefs import (
    BEGINS_HOUSEKEEPING,
    EVALUATES,
    EVALUATES_NOTHING,
    KEEPS_HOUSE,
    PACKAGES_WITHOUT_CASTS,
)

_KNOWN = PACKAGES_WITHOUT_CASTS | {"apex", "torch"}


def evaluates(name: str) -> bool:
    """Tell whether a function or method is called as what evaluates a network."""
    if not EVALUATES.search(name) or EVALUATES_NOTHING.search(name):
        return False
    return not name.startswith(BEGINS_HOUSEKEEPING)


def evaluates_own(name: str) -> bool:
    """Tell whether a method is called as what evaluates a network that its object keeps: ``eval()`` only sets a mode."""
    return evaluates(name) and name not in KEEPS_HOUSE


def evaluates_given(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether what is called lies out of sight, and has a name of what evaluates a network."""
    if not evaluates(tail(call)) or project.callees(call) or project.constructed(call):
        return False
    if module.scopes.builtin(call.func) is not None:
        return False
    external = project.external(module, call.func)
    return external is None or external.partition(".")[0] not in _KNOWN
