"""Options of `amp.initialize` that every call leaves to the default of a parameter."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import spreads
from amp_migrate.project import Project


def by_default(project: Project, site: Site, node: ast.expr) -> ast.Constant | None:
    """Return the constant that a parameter is wherever its function is called; None where a call may give another."""
    function = site.function
    if not isinstance(node, ast.Name) or function.node is None:
        return None
    bound, default = site.module.scopes.bound(node), function.parameters.defaults.get(node.id)
    if (
        len(bound) != 1
        or not isinstance(bound[0], ast.arg)
        or not isinstance(default, ast.Constant)
    ):
        return None
    calls = project.callers(function)
    if not calls or project.escapes(function) or any(spreads(site.call) for site in calls):
        return None
    given = project.received(function, node.id)
    return default if all(received.node is None for received in given) else None
