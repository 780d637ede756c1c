"""Entries of what is read in from outside, each a flag by itself: ``settings["half"]``, ``"--half" in sys.argv``."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import string
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once

_READS = frozenset({"get", "pop"})
_Place = tuple[Function, ast.expr]


def entry_of(project: Project, function: Function, node: ast.expr) -> str | None:
    """Return the key under which an expression reads an entry that no file of the project puts there; None for any other."""
    found = _read(node)
    if found is None:
        return None
    container, key = found
    if key in _stored(project) or not _is_outside(project, (function, container), set()):
        return None
    return key


@once
def _stored(project: Project) -> frozenset[str | None]:
    """Return the keys under which files of a project put something anywhere."""
    items = (item for _, item in project.nodes(ast.Subscript))
    return frozenset(string(item.slice) for item in items if not isinstance(item.ctx, ast.Load))


def _read(node: ast.expr) -> tuple[ast.expr, str] | None:
    """Return what holds an entry that is read, with the key."""
    container: ast.expr | None = None
    key: str | None = None
    if isinstance(node, ast.Subscript):
        container, key = node.value, string(node.slice)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _READS and node.args:
            container, key = node.func.value, string(node.args[0])
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        container, key = node.comparators[0], string(node.left)
    return (container, key) if container is not None and key is not None else None


def _is_outside(project: Project, place: _Place, seen: set[ast.AST]) -> bool:
    """Tell whether something is what a library gives, whatever hands it on."""
    function, node = place
    if node in seen:
        return True
    seen.add(node)
    module = function.module
    if project.external(module, node) is not None:
        return True
    if isinstance(node, ast.Call):
        return project.external(module, node.func) is not None
    if isinstance(node, ast.Subscript):
        return _is_outside(project, (function, node.value), seen)
    if not isinstance(node, ast.Name):
        return False
    places: list[tuple[Function, ast.expr | None]] = []
    for binding in module.scopes.bound(node):
        if isinstance(binding, ast.arg):
            taken = project.received(function, node.id, itself=True)
            places += [(giver, given) for _, giver, given in taken] or [(function, None)]
        else:
            places.append((project.function_of(module, binding), assigned(module.tree, binding)))
    return bool(places) and all(
        value is not None and _is_outside(project, (giver, value), seen) for giver, value in places
    )
