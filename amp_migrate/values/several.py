"""Names that come to hold several objects: ``for key, value in objects.items()``."""

from __future__ import annotations

import ast

from amp_migrate.modules.itself import IMPORTERS
from amp_migrate.modules.model import Module
from amp_migrate.values.objects import Made
from amp_migrate.values.values import Values


def one_of_several(values: Values, module: Module, name: ast.Name) -> bool:
    """Tell whether a loop binds a name, to what its collection holds, or it may be an object that a library made."""
    if any(_is_visited(module, binding) for binding in module.scopes.bound(name)):
        return True
    made = (fact for fact in values.facts(module, name) if isinstance(fact, Made))
    return any(fact.name.rpartition(".")[2] not in IMPORTERS for fact in made)


def _is_visited(module: Module, binding: ast.AST) -> bool:
    up = module.tree.parents.get(binding)
    while isinstance(up, ast.Tuple | ast.List | ast.Starred):
        up = module.tree.parents.get(up)
    return isinstance(up, ast.For | ast.AsyncFor | ast.comprehension)
