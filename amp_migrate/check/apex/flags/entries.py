"""Entries of what holds options, each a flag by itself: ``settings["half"]``, ``"--half" in sys.argv``."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once

_READS = frozenset({"get", "pop"})
_PUT = frozenset({"dict", "update"})
_Place = tuple[Function, ast.expr]


def entry_of(project: Project, function: Function, node: ast.expr) -> str | None:
    """Return the key under which an expression reads an entry, or asks for one of what a library gives; None for any other."""
    if isinstance(node, ast.Subscript):
        return string(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return string(node.args[0]) if node.func.attr in _READS and node.args else None
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return None
    outside = _is_outside(project, (function, node.comparators[0]), set())
    return string(node.left) if outside else None


@once
def put_under(project: Project) -> Mapping[str, list[_Place]]:
    """Return what files of a project put under each key, in whatever dictionary."""
    found: defaultdict[str, list[_Place]] = defaultdict(list)
    for module, node in project.nodes(ast.Dict, ast.Call, ast.Subscript):
        for key, value in _puts(module.tree, node):
            if key is not None and value is not None:
                found[key].append((project.function_of(module, node), value))
    return dict(found)


def _puts(tree: Tree, node: ast.expr) -> Iterator[tuple[str | None, ast.expr | None]]:
    """Yield the keys under which a node puts something, with what that is."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            yield (string(key) if key is not None else None), value
    elif isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            yield string(node.slice), assigned(tree, node)
    elif isinstance(node, ast.Call) and tail(node) in _PUT:
        yield from ((k.arg, k.value) for k in node.keywords)
    elif isinstance(node, ast.Call) and tail(node) == "setdefault" and len(node.args) > 1:
        yield string(node.args[0]), node.args[1]


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
