"""What a call is given through a dictionary of keywords: ``amp.initialize(model, optimizer, **options)``."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import argument, tail
from amp_migrate.modules.model import Module


def given(module: Module, call: ast.Call, name: str, place: int) -> ast.expr | None:
    """Return an argument of a call, by itself or in the one dictionary that a variable holds; None where it is not told."""
    found = argument(call, name, place)
    if found is not None:
        return found
    for keyword in call.keywords:
        if keyword.arg is None and isinstance(keyword.value, ast.Name):
            found = found or _written(module, keyword.value, name)
    return found


def _written(module: Module, options: ast.Name, key: str) -> ast.expr | None:
    """Return what a variable holds under a key, where nothing else can be put there."""
    scopes = module.scopes
    held, bound = scopes.only_value(options), scopes.bound(options)
    if held is None:
        return None
    values = list(_entries(held).get(key, []))
    for node in scopes.spelt(scopes.owner(options), options.id):
        if node in bound:
            continue
        added = _added(module, node, bound[0])
        if added is None and not _keeps(module, node, key):
            return None
        values += [keyword.value for keyword in added or () if keyword.arg == key]
    return values[0] if len(values) == 1 else None


def _added(module: Module, node: ast.Name, bound: ast.AST) -> list[ast.keyword] | None:
    """Return what ``options.update(key=value)`` puts into a dictionary behind its display; None for any other use."""
    tree = module.tree
    call = tree.parent(tree.parent(node) or node)
    if not isinstance(call, ast.Call) or tail(call) != "update" or call.args:
        return None
    named = all(keyword.arg is not None for keyword in call.keywords)
    beside = isinstance(tree.parent(call), ast.Expr) and tree.block(tree.statement(call)) is (
        tree.block(tree.statement(bound))
    )
    return call.keywords if named and beside and tree.parent(node) is call.func else None


def _keeps(module: Module, node: ast.Name, key: str) -> bool:
    """Tell whether a use of a dictionary leaves what it holds under a key: it is unpacked, or an item of another key."""
    up = module.tree.parent(node)
    if isinstance(up, ast.keyword):
        return up.arg is None
    if not isinstance(up, ast.Subscript) or not isinstance(up.slice, ast.Constant):
        return False
    return isinstance(up.ctx, ast.Load) or up.slice.value != key


def _entries(held: ast.expr) -> dict[object, list[ast.expr]]:
    """Return what a dictionary that is written out holds; a key that is there twice has both values."""
    found: dict[object, list[ast.expr]] = {}
    if isinstance(held, ast.Dict) and all(isinstance(k, ast.Constant) for k in held.keys):
        for entry, value in zip(held.keys, held.values, strict=True):
            assert isinstance(entry, ast.Constant)
            found.setdefault(entry.value, []).append(value)
    elif isinstance(held, ast.Call) and tail(held) == "dict" and not held.args:
        for keyword in held.keywords if all(k.arg is not None for k in held.keywords) else ():
            found.setdefault(keyword.arg, []).append(keyword.value)
    return found
