"""Apex imports and the guards that only exist for them go.

## What it does
Removes the imports of Apex that nothing uses any more, with their `try`/`except ImportError`, the flags that
said whether Apex is installed, `amp = None`, `assert amp is not None` and "please install apex" errors. Tests of
such flags are folded. An `except ImportError` that imports the native counterpart is kept in its place.

## Why
`from apex import amp` raises since May 2025, and a guard without its import is dead code.

## Example
    try:
        from apex import amp
    except ImportError:
        raise ImportError("Please install apex")

## Use instead
    (nothing)

## Safety
Faithful.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import tail
from amp_migrate.plan import (
    Decision,
    Drop,
    DropImportedName,
    Edit,
    Status,
)
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.guards import bound_name, guards, root_name
from amp_migrate.rules.kept import is_removed, star_needed, stays
from amp_migrate.unit.sites import Kind, Site, is_apex

RULE = Rule("AMP101", "Apex imports and their guards go", Safety.FAITHFUL, order=99)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Remove the Apex imports of a file whose names nothing uses after the units were migrated."""
    used = {
        root_name(site)
        for site in context.sites
        if site.kind is not Kind.IMPORT and root_name(site)
    }
    apex_left = any(s.kind is not Kind.IMPORT for s in context.sites)
    gone: set[ast.AST] = set()
    if not apex_left and not context.keeps_guards:
        yield from guards(context, RULE, gone)
    for site in context.of(Kind.IMPORT):
        yield _import(context, site, used, gone)
    for node in context.module.tree.nodes(ast.Call):
        if node not in gone and node not in context.taken and _imports_by_name(node):
            message = "this import of Apex by its name stays"
            advice = "delete it once nothing uses what it gives"
            yield decision(RULE, Status.LEFT, context.module, node, message, advice=advice)


def _imports_by_name(node: ast.AST) -> bool:
    """Tell whether a call imports Apex: ``importlib.import_module("apex.amp")``."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = node.args[0]
    return (
        tail(node) in ("import_module", "__import__")
        and isinstance(name, ast.Constant)
        and isinstance(name.value, str)
        and is_apex(name.value)
    )


def _import(
    context: FileContext, site: Site, used: set[str | None], gone: set[ast.AST]
) -> Decision:
    node = site.node
    module = context.module
    if node in gone:
        return decision(RULE, Status.MIGRATED, module, node, "goes with its guard")
    aliases = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
    ours = [a for a in aliases if _is_ours(context, node, a)]
    free = [a for a in ours if not _needed(context, node, a, used)]
    if context.keeps_guards:
        free = [a for a in free if not _is_amp(node, a)]
    if not free:
        return decision(
            RULE,
            Status.LEFT if any(is_removed(node, a) for a in ours) else Status.NOTE,
            module,
            node,
            "this import of Apex stays, for what is left of it below",
        )
    span = module.tree.span(node)
    edit: Edit
    if len(free) == len(aliases):
        edit = Drop(span)
    else:
        edit = DropImportedName(span, tuple(a.name for a in free))
    names = ", ".join(a.name for a in free)
    return decision(RULE, Status.MIGRATED, module, node, f"import of {names} removed", [edit])


def _is_amp(node: ast.AST, alias: ast.alias) -> bool:
    source = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return source == "apex" or source.startswith("apex.amp")


def _is_ours(context: FileContext, node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether an imported name is Apex, or says whether Apex is there."""
    if isinstance(node, ast.ImportFrom) and not is_apex(node.module or "."):
        name = ast.Name(bound_name(alias), ast.Load())
        for use in context.module.tree.nodes(ast.Name):
            if use.id == name.id and isinstance(use.ctx, ast.Load):
                return context.availability.is_flag(use)
        return False
    return isinstance(node, ast.ImportFrom) or is_apex(alias.name)


def _needed(context: FileContext, node: ast.AST, alias: ast.alias, used: set[str | None]) -> bool:
    if alias.name == "*":
        return star_needed(context, node, alias)
    name = bound_name(alias)
    return name in used or _exported(context, name) or stays(context, node, alias)


def _exported(context: FileContext, name: str) -> bool:
    for node in context.module.tree.nodes(ast.Assign):
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return any(
                isinstance(n, ast.Constant) and n.value == name for n in ast.walk(node.value)
            )
    return False
