"""Forms of expressions that mean something by themselves: named tuples, and a module that asks for itself."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import assigned
from amp_migrate.modules.lookup import Lookup
from amp_migrate.modules.model import Module


def fields(lookup: Lookup, module: Module, func: ast.expr) -> list[str]:
    """Return the attributes of the named tuples that a name of the file makes: ``P = namedtuple("P", ["x", "y"])``."""
    owner = module.scopes.owner(func) if isinstance(func, ast.Name) else None
    bindings = (
        module.scopes.bindings(owner, func.id) if owner and isinstance(func, ast.Name) else []
    )
    made = assigned(module.tree, bindings[0]) if len(bindings) == 1 else None
    if not isinstance(made, ast.Call) or len(made.args) != 2:
        return []
    if "collections.namedtuple" not in lookup.expression(module, made.func):
        return []
    names = made.args[1]
    if isinstance(names, ast.Constant) and isinstance(names.value, str):
        return names.value.replace(",", " ").split()
    parts = names.elts if isinstance(names, ast.List | ast.Tuple) else []
    found = [part.value for part in parts if isinstance(part, ast.Constant)]
    return [str(name) for name in found] if len(found) == len(parts) else []


def is_module_itself(node: ast.expr) -> bool:
    """Tell whether an expression is ``sys.modules[__name__]``."""
    if not isinstance(node, ast.Subscript) or path(node.value) != "sys.modules":
        return False
    return isinstance(node.slice, ast.Name) and node.slice.id == "__name__"
