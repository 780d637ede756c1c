"""How many items the tuple has that a function returns."""

from __future__ import annotations

import ast

from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Project


def returned_items(project: Project, call: ast.Call) -> int:
    """Return the number of items of the tuple that a call gives; 0 where that is not known."""
    called = list(project.callees(call))
    if len(called) != 1:
        return 0
    function = called[0]
    node = function.node
    if not isinstance(node, ast.FunctionDef) or node.decorator_list:
        return 0
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in function.own_nodes):
        return 0
    returns = [part for part in function.own_nodes if isinstance(part, ast.Return)]
    counts = {_items(function, part.value) for part in returns}
    return counts.pop() if len(counts) == 1 else 0


def _items(function: Function, value: ast.expr | None) -> int:
    if isinstance(value, ast.Name):
        bound = function.module.scopes.bound(value)
        value = assigned(function.module.tree, bound[0]) if len(bound) == 1 else None
    if not isinstance(value, ast.Tuple) or any(isinstance(e, ast.Starred) for e in value.elts):
        return 0
    return len(value.elts)
