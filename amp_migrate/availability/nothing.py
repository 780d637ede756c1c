"""Whether an expression may be None, as far as assignments, defaults and arguments say."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Project


def may_be_none(project: Project, function: Function, node: ast.expr) -> bool:
    """Tell whether None is among the values that a name, or an expression of names, may have in a function."""
    seen: set[tuple[Function, str]] = set()
    queue = [(function, node)]
    while queue:
        here, value = queue.pop()
        if is_none(value):
            return True
        if isinstance(value, ast.IfExp):
            queue += [(here, value.body), (here, value.orelse)]
        elif isinstance(value, ast.BoolOp):
            queue += [(here, part) for part in value.values]
        elif isinstance(value, ast.Name) and (here, value.id) not in seen:
            seen.add((here, value.id))
            queue += _values(project, here, value)
    return False


def _values(
    project: Project, function: Function, name: ast.Name
) -> list[tuple[Function, ast.expr]]:
    """Return what a name is bound to, each with the function it stands in."""
    scopes, tree = function.module.scopes, function.module.tree
    owner = scopes.owner(name)
    if owner is None:
        return []
    bound = [assigned(tree, binding) for binding in scopes.bindings(owner, name.id)]
    found = [(function, value) for value in bound if value is not None]
    if owner is function.scope and name.id in function.parameters.names:
        default = function.parameters.defaults.get(name.id)
        found += [(function, default)] if default is not None else []
        for site in project.callers(function):
            given = project.arguments(site, function).get(name.id)
            found += [(site.function, given)] if given is not None else []
    return found
