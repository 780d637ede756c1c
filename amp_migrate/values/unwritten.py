"""Dictionaries that no file writes out: they come out of other files, or from who calls a library."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import outward
from amp_migrate.modules.model import Module
from amp_migrate.values.values import Values


def is_out_of_sight(
    values: Values, modules: Iterable[Module], module: Module, mapping: ast.expr
) -> bool:
    """Tell whether nothing in sight writes out an item of a mapping, or of what it is taken from, or hands it on as keywords."""
    groups: set[int] = set()
    for where in modules:
        for node in where.tree.nodes(ast.Dict, ast.DictComp, ast.Call):
            if _writes(where, node):
                groups |= values.groups(where, node)
        for function in where.functions.values():
            keywords = function.node.args.kwarg if function.node is not None else None
            groups |= values.groups(where, keywords) if keywords is not None else frozenset()
    return all(groups.isdisjoint(values.groups(module, part)) for part in outward(mapping))


def _writes(module: Module, node: ast.expr) -> bool:
    """Tell whether an expression writes out items of a dictionary: not a copy, and not what holds dictionaries alone."""
    if isinstance(node, ast.Call):
        if module.scopes.builtin(node.func) != "dict":
            return False
        copied = all(isinstance(arg, ast.Name | ast.Attribute | ast.Subscript) for arg in node.args)
        return not copied or bool(node.keywords)
    if not isinstance(node, ast.Dict):
        return True
    return any(key is None for key in node.keys) or not all(
        isinstance(value, ast.Dict) for value in node.values
    )
