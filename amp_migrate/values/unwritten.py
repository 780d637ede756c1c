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
    """Tell whether nothing in sight writes out a mapping or what it is taken from, or hands it on as keywords."""
    groups: set[int] = set()
    for where in modules:
        for node in where.tree.nodes(ast.Dict, ast.DictComp, ast.Call):
            if not isinstance(node, ast.Call) or where.scopes.builtin(node.func) == "dict":
                groups |= values.groups(where, node)
        for function in where.functions.values():
            keywords = function.node.args.kwarg if function.node is not None else None
            groups |= values.groups(where, keywords) if keywords is not None else frozenset()
    return all(groups.isdisjoint(values.groups(module, part)) for part in outward(mapping))
