"""Uses of a class of Apex that only name it, where a program asks what an object is."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import tail
from amp_migrate.project import Module


def only_names_type(site: Site) -> bool:
    """Tell whether a use only names the class: in `isinstance`, a comparison of types, or an annotation.

    So does a list of types in a variable that nothing else reads.
    """
    return names_type(site.module, site.node)


def names_type(module: Module, node: ast.AST) -> bool:
    """Tell whether an expression that means a class only names it."""
    return _names_type(module, node, set())


def _names_type(module: Module, node: ast.AST, seen: set[str]) -> bool:
    tree = module.tree
    child, up = node, tree.parent(node)
    while (
        isinstance(up, ast.Tuple | ast.Subscript | ast.List | ast.Set)
        or (isinstance(up, ast.BinOp) and isinstance(up.op, ast.BitOr | ast.Add))
        or (isinstance(up, ast.Call) and up.args == [child] and tail(up) in ("tuple", "list"))
    ):
        child, up = up, tree.parent(up)
    if isinstance(up, ast.Assign) and child is not node and len(up.targets) == 1:
        return _holds_types(module, up.targets[0], seen)
    if isinstance(up, ast.Call):
        named = isinstance(up.func, ast.Name) and up.func.id in ("isinstance", "issubclass")
        return named and len(up.args) == 2 and up.args[1] is child
    if isinstance(up, ast.Compare):
        sides = [up.left, *up.comparators]
        return any(
            isinstance(s, ast.Call) and isinstance(s.func, ast.Name) and s.func.id == "type"
            for s in sides
        )
    if isinstance(up, ast.arg | ast.AnnAssign):
        return up.annotation is child
    return isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef) and up.returns is child


def _holds_types(module: Module, target: ast.expr, seen: set[str]) -> bool:
    """Tell whether a variable of a function is only read where types are named."""
    scope = module.tree.scope(target)
    if not isinstance(target, ast.Name) or isinstance(scope, ast.Module) or target.id in seen:
        return False
    names = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == target.id]
    read = [n for n in names if isinstance(n.ctx, ast.Load)]
    return all(_names_type(module, n, {*seen, target.id}) for n in read)
