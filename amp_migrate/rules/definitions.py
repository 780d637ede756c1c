"""Definitions that are written into a file: whether their name is free, and where they go."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.apex.sites import Site, is_apex
from amp_migrate.facts.paths import bound_name
from amp_migrate.plan.model import Insert
from amp_migrate.project import Module


def is_free(module: Module, name: str) -> bool:
    """Tell whether a file binds a name nowhere, but by an import from Apex."""
    for node in module.tree.parents:
        source = module.tree.parent(node) if isinstance(node, ast.alias) else None
        apex = isinstance(source, ast.ImportFrom) and is_apex(source.module or "")
        if not apex and bound_name(node) == name:
            return False
    return True


def above(module: Module, sites: Iterable[Site], text: str, defines: str = "") -> Insert:
    """Return the edit that puts a definition above the first statement of the file that needs it.

    Where it `defines` a name for any file, those of one folder have it from the first of them.
    """
    tree = module.tree
    held = {n for site in sites for n in (site.node, *tree.ancestors(site.node))}
    first = next(stmt for stmt in tree.module.body if stmt in held)
    return Insert(tree.span(first), text, after=False, defines=defines)
