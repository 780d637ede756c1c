"""The name of the scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.paths import bound_name
from amp_migrate.project import Module

CANDIDATES = ("scaler", "grad_scaler", "amp_scaler", "native_scaler")
_NAMING: tuple[type[ast.AST], ...] = (
    ast.Name, ast.arg, ast.Attribute, ast.alias, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
    ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
)  # fmt: skip


def free_name(modules: Iterable[Module]) -> str:
    """Return the first usual name for the scaler that no file of the unit uses for something else."""
    nodes = (node for module in modules for node in module.tree.nodes(*_NAMING))
    taken = {name for node in nodes for name in _names(node)}
    return next((name for name in CANDIDATES if name not in taken), "apex_scaler")


def _names(node: ast.AST) -> Iterable[str | None]:
    """Return the names that a node binds, reads or declares, attributes too."""
    if isinstance(node, ast.Name | ast.Attribute):
        return (node.id if isinstance(node, ast.Name) else node.attr,)
    return node.names if isinstance(node, ast.Global | ast.Nonlocal) else (bound_name(node),)
