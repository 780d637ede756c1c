"""Flags about Apex that other files go on asking once the file that sets them has lost Apex."""

from __future__ import annotations

import ast

from amp_migrate.availability.installed import imports_apex
from amp_migrate.dual.native import makes_scaler
from amp_migrate.facts.paths import path
from amp_migrate.project import Module, Project
from amp_migrate.rules.base import FileContext


def asked_elsewhere(context: FileContext) -> list[str]:
    """Return the availability flags of a file that files without Apex read, sorted.

    A file that has Apex, or a name of it, folds its tests; any other is left alone and needs the flag.
    """
    flags = context.availability.flags
    if not flags:
        return []
    found: set[str] = set()
    for reader in context.others():
        asked = _read(context.project, context.module, reader, flags)
        if asked and not _has_apex(context.project, reader):
            found |= asked
    return sorted(found)


def value(context: FileContext) -> bool:
    """Return what a flag that stays says: False where native AMP stood beside Apex, which nothing may choose now."""
    native = any(makes_scaler(context.project, m) for m in context.project.modules.values())
    return context.availability.installed and not native


def _has_apex(project: Project, module: Module) -> bool:
    return imports_apex(module.tree.module.body) or any(
        (project.apex(module, node) or "").partition(".")[0] == "apex"
        for node in module.tree.nodes(ast.Name)
    )


def _read(project: Project, module: Module, reader: Module, flags: frozenset[str]) -> set[str]:
    found = {
        alias.name
        for node in reader.tree.nodes(ast.ImportFrom)
        if _reads(project, module, reader, node)
        for alias in node.names
    }
    tree = reader.tree
    found |= {n.attr for n in tree.nodes(ast.Attribute)}
    if module in project.lookup.starred_from(reader):
        found |= {
            n.id for n in tree.nodes(ast.Name) if not reader.scopes.bindings(tree.module, n.id)
        }
    return found & flags


def _reads(project: Project, module: Module, reader: Module, node: ast.ImportFrom) -> bool:
    source = project.lookup.source(reader, node)
    if source is None:
        return (node.module or "").rpartition(".")[2] == module.name.rpartition(".")[2]
    return source is module or (
        isinstance(source, Module) and module in project.lookup.starred_from(source)
    )


def taken_elsewhere(context: FileContext, names: set[str]) -> bool:
    """Tell whether another file may take one of some names from this one."""
    taken = taken_names(context)
    own = context.module.name.rpartition(".")[2]
    attributes = {
        node.attr
        for module in context.others()
        for node in module.tree.nodes(ast.Attribute)
        if (path(node.value) or "").rpartition(".")[2] == own
    }
    return bool(names & (taken | attributes)) or "*" in taken


def taken_names(context: FileContext) -> set[str]:
    """Return the names that some file imports from one of this name."""
    own = context.module.name.rpartition(".")[2]
    return {
        alias.name
        for _, other in context.project.nodes(ast.ImportFrom)
        if (other.module or "").rpartition(".")[2] == own
        for alias in other.names
    }
