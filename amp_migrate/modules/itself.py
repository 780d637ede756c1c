"""What a file asks of a module that it imports, which may be the file itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import string
from amp_migrate.facts.imports import last_name
from amp_migrate.modules.model import Module

IMPORTERS = frozenset({"import_module", "__import__"})


def imports(call: ast.Call) -> str | None:
    """Return the name of the module that a call imports."""
    return string(call.args[0]) if call.args and last_name(call) in IMPORTERS else None


def asked_of(module: Module, dotted: str) -> Iterator[str]:
    """Yield the names that a file reads off a module which it imports, or imports from it."""
    tree = module.tree
    for node in tree.nodes(ast.ImportFrom):
        if node.module == dotted and not node.level:
            yield from (alias.name for alias in node.names)
    named = {
        alias.asname or alias.name
        for node in tree.nodes(ast.Import)
        for alias in node.names
        if alias.name == dotted
    }
    named |= {
        target.id
        for node in tree.nodes(ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
        if isinstance(node.value, ast.Call) and imports(node.value) == dotted
    }
    for attribute in tree.nodes(ast.Attribute):
        if isinstance(attribute.value, ast.Name) and attribute.value.id in named:
            yield attribute.attr
