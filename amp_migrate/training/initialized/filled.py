"""What a function or a file puts into the objects of its variables."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function, Module

_LOOKING = frozenset({"get", "items", "keys", "values"})
"""Methods of a table that change nothing in it."""


def put_into(function: Function, name: ast.Name) -> Iterator[ast.expr]:
    """Yield what a function puts into the object of a variable: as an attribute, or by a method of it."""
    tree = function.module.tree
    for node in function.module.scopes.spelt(function.scope, name.id):
        up = tree.parent(node)
        if not isinstance(up, ast.Attribute) or up.value is not node:
            continue
        user = tree.parent(up)
        if isinstance(user, ast.Assign) and up in user.targets:
            yield user.value
        elif isinstance(user, ast.Call) and user.func is up:
            yield from all_given(user)


def is_filled(module: Module, name: ast.Name) -> bool:
    """Tell whether anything is put into a table after it is made, or may be: a method of it is called, or it is handed on."""
    tree = module.tree
    for node in module.scopes.spelt(module.scopes.owner(name), name.id):
        up = tree.parent(node)
        reads = isinstance(up, ast.Subscript) and up.value is node and isinstance(up.ctx, ast.Load)
        reads |= isinstance(up, ast.Attribute) and up.attr in _LOOKING
        reads |= isinstance(up, ast.Assign) and _takes_apart(up)
        if isinstance(node.ctx, ast.Load) and not reads:
            return True
    return False


def _takes_apart(assign: ast.Assign) -> bool:
    return all(isinstance(target, ast.List | ast.Tuple) for target in assign.targets)
