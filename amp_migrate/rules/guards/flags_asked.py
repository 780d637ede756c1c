"""Flags about Apex that other files go on asking once the file that sets them has lost Apex."""

from __future__ import annotations

import ast

from amp_migrate.availability.installed import imports_apex
from amp_migrate.dual.native import makes_scaler
from amp_migrate.facts.paths import path, walk
from amp_migrate.modules.offered import may_take
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
        asked = flags & _taken(context, reader)
        if asked and not _has_apex(context.project, reader):
            found |= asked
    return sorted(found)


def still_read(context: FileContext) -> list[str]:
    """Return the names for why Apex is not installed that are read where no test folds, sorted."""
    scopes, top = context.module.scopes, context.module.tree.module
    return sorted(
        name
        for name in context.availability.reasons
        if taken_elsewhere(context, {name})
        or not (
            name in context.availability.lacks
            or all(_folds(context, node) for node in scopes.reads(top, name))
        )
    )


def _folds(context: FileContext, node: ast.Name) -> bool:
    """Tell whether a name is part of a test that Apex settles, or stands in the branch that such a test rules out."""
    tree, asks = context.module.tree, context.availability
    up = tree.parents[node]
    asked: ast.expr = up if isinstance(up, ast.Compare) else node
    holder = next(n for n in tree.ancestors(asked) if not isinstance(n, ast.BoolOp | ast.UnaryOp))
    if isinstance(holder, ast.Assert):
        parts = (part for part in walk(holder.test) if isinstance(part, ast.expr))
        return any(map(asks.known, parts))
    if isinstance(holder, ast.If) and asks.known(asked) is not None:
        return node in walk(holder.test)
    return any(
        asks.truth(test.test) is not holds
        for test, holds in tree.sides(node)
        if asks.truth(test.test) is not None
    )


def value(context: FileContext) -> bool:
    """Return what a flag that stays says: False where native AMP stood beside Apex, which nothing may choose now."""
    native = any(makes_scaler(context.project, m) for m in context.project.modules.values())
    return context.availability.installed and not native


def _has_apex(project: Project, module: Module) -> bool:
    return imports_apex(module.tree.module.body) or any(
        (project.apex(module, node) or "").partition(".")[0] == "apex"
        for node in module.tree.nodes(ast.Name)
    )


def taken_elsewhere(context: FileContext, names: set[str]) -> bool:
    """Tell whether another file may take one of some names from this one."""
    taken = set().union(*(_taken(context, reader) for reader in context.others()))
    return bool(names & taken) or "*" in taken


def _taken(context: FileContext, reader: Module) -> set[str]:
    """Return the names that a file takes from another one, reads off it, or may have by a star import."""
    module, lookup, tree = context.module, context.project.lookup, reader.tree
    found = {
        alias.name
        for statement in tree.nodes(ast.ImportFrom)
        if may_take(lookup, reader, statement, module)
        for alias in statement.names
    }
    found |= {
        n.attr
        for n in tree.nodes(ast.Attribute)
        if module in lookup.expression(reader, n.value)
        or (path(n.value) or "").rpartition(".")[2] == module.name.rpartition(".")[2]
    }
    if module in lookup.starred_from(reader):
        found |= {node.id for node in tree.nodes(ast.Name) if not reader.scopes.bound(node)}
    return found
