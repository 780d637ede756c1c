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

from amp_migrate.apex.sites import Kind, Site, is_apex
from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import imported_name, root, tail
from amp_migrate.plan.model import Decision, Drop, DropImportedName, Edit, Finding, Status
from amp_migrate.rules.base import FileContext, Rule, Safety, decision
from amp_migrate.rules.guards.flags_asked import taken_elsewhere
from amp_migrate.rules.guards.folding import Folding
from amp_migrate.rules.guards.kept import is_removed, star_needed, stays

RULE = Rule("AMP101", "Apex imports and their guards go", Safety.FAITHFUL, order=99)


def decide_file(context: FileContext) -> Iterator[Decision]:
    """Remove the Apex imports of a file whose names nothing uses after the units were migrated."""
    used = {
        root(site.node)
        for site in context.sites
        if site.kind is not Kind.IMPORT and root(site.node)
    }
    apex_left = any(s.kind is not Kind.IMPORT for s in context.sites)
    folding = Folding(context, RULE)
    if not apex_left:
        yield from folding.unasked() if context.keeps_guards else folding.all()
    for site in context.of(Kind.IMPORT):
        yield _import(context, site, used, folding.gone)
    for node in context.module.tree.nodes(ast.Call):
        if node not in folding.gone and node not in context.taken and _imports_by_name(node):
            message = "this imports Apex by its name, and what uses the result is not migrated"
            advice = "delete it once nothing uses what it gives"
            yield decision(RULE, Status.LEFT, context.module, node, message, advice=advice)


def _imports_by_name(node: ast.AST) -> bool:
    """Tell whether a call imports Apex: ``importlib.import_module("apex.amp")``."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = string(node.args[0])
    return tail(node) in ("import_module", "__import__") and name is not None and is_apex(name)


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
        free = [a for a in free if not (_is_amp(node, a) and _is_asked(context, node, a))]
    if not free:
        return _staying(context, site, ours)
    span = module.tree.span(node)
    edit: Edit
    if len(free) == len(aliases):
        edit = Drop(span)
    else:
        edit = DropImportedName(span, tuple(a.name for a in free))
    names = ", ".join(a.name for a in free)
    return decision(RULE, Status.MIGRATED, module, node, f"import of {names} removed", [edit])


def _staying(context: FileContext, site: Site, names: list[ast.alias]) -> Decision:
    """Return why an import stays: what uses it below, else what else asks for it."""
    gone = {imported_name(alias) for alias in names if is_removed(site.node, alias)}
    removed = bool(gone)
    status = Status.LEFT if removed else Status.NOTE
    bound = {imported_name(alias) for alias in names if alias.name != "*"}
    users = [s for s in context.sites if s.kind is not Kind.IMPORT and root(s.node) in bound]
    users.sort(key=lambda user: root(user.node) not in gone)
    guard = context.module.tree.enclosing(site.node, ast.Try)
    said, advice, cause = ", ".join(sorted(bound)), "", None
    if users:
        message = f"the import of {said} stays for its uses in this file"
        cause = context.held.get(users[0].place, users[0].place)
    elif len(bound) < len(names):
        message = "this import of all names of Apex stays for those that are still used"
        cause = context.cause_of() if removed else None
    elif any(_exported(context, name) for name in bound):
        message = f"the import of {said} stays, as `__all__` exports it"
        advice = f"take {said} out of `__all__`, then run again"
    elif guard is not None:
        message = f"the import of {said} stays, as its `try` says whether Apex is installed"
        advice = "delete the `try` once nothing asks for what it sets"
        cause = context.cause_of() if removed else None
    else:
        message = f"the import of {said} stays, as another file takes it from here"
        advice = "delete it once no other file does"
    span = site.span
    return Decision(Finding(site.module.path, span, RULE.code, status, message, advice, cause))


def _is_asked(context: FileContext, node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether an import that its own file does not use may serve what is left elsewhere."""
    guard = context.module.tree.enclosing(node, ast.Try)
    names = {imported_name(alias)}
    return guard is not None or taken_elsewhere(context, names)


def _is_amp(node: ast.AST, alias: ast.alias) -> bool:
    source = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
    return source == "apex" or source.startswith("apex.amp")


def _is_ours(context: FileContext, node: ast.AST, alias: ast.alias) -> bool:
    """Tell whether an imported name is Apex, or says whether Apex is there."""
    if isinstance(node, ast.ImportFrom) and not is_apex(node.module or "."):
        name = ast.Name(imported_name(alias), ast.Load())
        for use in context.module.tree.nodes(ast.Name):
            if use.id == name.id and isinstance(use.ctx, ast.Load):
                return context.availability.is_flag(use)
        return False
    return isinstance(node, ast.ImportFrom) or is_apex(alias.name)


def _needed(context: FileContext, node: ast.AST, alias: ast.alias, used: set[str | None]) -> bool:
    if alias.name == "*":
        return star_needed(context, node, alias)
    name = imported_name(alias)
    return name in used or _exported(context, name) or stays(context, node, alias)


def _exported(context: FileContext, name: str) -> bool:
    for node in context.module.tree.nodes(ast.Assign):
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return any(
                isinstance(n, ast.Constant) and n.value == name for n in ast.walk(node.value)
            )
    return False
