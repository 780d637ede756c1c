"""What tests of the old text ask whether Apex is installed, which is taken for granted where it trains."""

from __future__ import annotations

import ast

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_true
from amp_migrate.flow.assumption import NOTHING, Assumption, Truth
from amp_migrate.flow.terms import term
from amp_migrate.project import Function, Module, Project


def installed(project: Project, function: Function) -> Assumption:
    """Return what is known of the names of a function where Apex is installed."""
    found = NOTHING
    if "apex" not in function.module.tree.text:
        return found
    seen: set[str] = set()
    for node in every(function.scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in seen:
            seen.add(node.id)
            if _tells(project, function, node) and (spelled := term(node)) is not None:
                found = found.with_fact(spelled, Truth(True))
    return found


def _tells(project: Project, function: Function, name: ast.Name) -> bool:
    """Tell whether a name is bound to something, or to True, exactly where Apex can be imported."""
    module = function.module
    scope = module.scopes.owner(name)
    bindings = module.scopes.bindings(scope, name.id) if scope is not None else []
    tries = [module.tree.enclosing(binding, ast.Try) for binding in bindings]
    sure = [t for t in tries if t is not None and _imports_apex(t)]
    if not sure:
        return False
    handled = {part for t in sure for h in t.handlers for part in every(h)}
    there = [
        b for b in bindings if b not in handled and not _only_from(project, module, b, handled)
    ]
    return bool(there) and all(_is_there(module.tree.parent(b), b) for b in there)


def _only_from(project: Project, module: Module, binding: ast.AST, nodes: set[ast.AST]) -> bool:
    """Tell whether a binding stands in a function that only some nodes call."""
    function = project.function_of(module, binding)
    callers = project.callers(function) if function.node is not None else []
    return bool(callers) and all(site.call in nodes for site in callers)


def _is_there(up: ast.AST | None, binding: ast.AST) -> bool:
    if isinstance(binding, ast.alias) or isinstance(up, ast.ImportFrom | ast.Import):
        return True
    value = up.value if isinstance(up, ast.Assign) else None
    return is_true(value)


def _imports_apex(node: ast.Try) -> bool:
    for statement in node.body:
        for part in every(statement):
            if isinstance(part, ast.Import):
                names = [alias.name for alias in part.names]
            elif isinstance(part, ast.ImportFrom):
                names = [part.module or ""]
            else:
                continue
            if any(name.partition(".")[0] == "apex" for name in names):
                return True
    return False
