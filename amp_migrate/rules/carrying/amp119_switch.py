"""A name that held amp or None stays, as the switch that it was.

## What it does
Where `amp` is imported under an option, None without it, and the program asks which, `amp = True` takes the place of
the import. Tests, arguments and attributes that pass the switch on stay as they are. Where it is passed to several
functions that initialize, or to a class method, the GradScaler is made behind the test and passed on beside it.

## Why
The name says whether to train in mixed precision; the code that reads it goes on working.

## Example
    if args.fp16:
        from apex import amp
    else:
        amp = None

## Use instead
    if args.fp16:
        amp = True
    else:
        amp = None

## Safety
Faithful.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.availability.optional import imported
from amp_migrate.plan.model import Decision, Drop, Edit, Replace, ReplaceExpression, Status
from amp_migrate.project import Module
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule("AMP119", "a name that held amp or None stays as a switch", Safety.FAITHFUL, order=12)


def decide(context: Context) -> Iterator[Decision]:
    """Turn the imports into switches, and what else is handed on in their place."""
    if not context.unit.switches:
        return
    for site in context.unit.switches:
        yield _switch(context, site)
    for site in context.unit.of(Kind.VALUE):
        if not context.is_gone(site.node) and _is_plain_amp(context, site):
            edit = ReplaceExpression(site.span, "True")
            message = "amp is passed on as a switch"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])


def _switch(context: Context, site: Site) -> Decision:
    node = site.node
    aliases = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
    names = [a.asname or a.name for a in aliases]
    imports = context.unit.availability[site.module].optional.imports
    whole = next(stmt for stmt in imports if stmt is node or node in ast.walk(stmt))
    edits: list[Edit] = [Replace(site.module.tree.span(whole), f"{names[0]} = True")]
    edits += [Drop(site.module.tree.span(g)) for g in _idle_globals(site.module, names)]
    message = f"`{names[0]}` says whether AMP is on"
    return decision(RULE, Status.MIGRATED, site.module, node, message, edits)


def _is_plain_amp(context: Context, site: Site) -> bool:
    """Tell whether amp itself is given to an argument, attribute or result, and not a switch."""
    node, tree = site.node, site.module.tree
    if not isinstance(node, ast.Name) or not imported(site.module, node):
        return False
    parent = tree.parent(node)
    handed = isinstance(parent, ast.Call | ast.keyword | ast.Assign | ast.Return)
    return handed and not context.unit.availability[site.module].optional.holds(site.module, node)


def _idle_globals(module: Module, names: list[str]) -> list[ast.Global]:
    """Return the `global` statements outside functions, which say nothing and may not follow an assignment."""
    tree = module.tree
    found = [node for node in tree.nodes(ast.Global) if tree.function(node) is None]
    return [node for node in found if node.names == names]
