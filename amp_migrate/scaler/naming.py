"""The name of the scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.project import Module

CANDIDATES = ("scaler", "grad_scaler", "amp_scaler", "native_scaler")


def free_name(modules: Iterable[Module]) -> str:
    """Return the first usual name for the scaler that no file of the unit uses for something else."""
    taken: set[str] = set()
    for module in modules:
        for node in module.tree.nodes(ast.Name, ast.arg, ast.Attribute, ast.alias):
            if isinstance(node, ast.Name):
                taken.add(node.id)
            elif isinstance(node, ast.arg):
                taken.add(node.arg)
            elif isinstance(node, ast.Attribute):
                taken.add(node.attr)
            elif isinstance(node, ast.alias):
                taken.add((node.asname or node.name).partition(".")[0])
    return next((name for name in CANDIDATES if name not in taken), "apex_scaler")
