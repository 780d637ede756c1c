"""What tests of the old text ask whether Apex is installed: it is where it trains, and is not where its way goes."""

from __future__ import annotations

import ast
from collections.abc import Collection

from amp_migrate.facts.below import every
from amp_migrate.facts.constants import is_false, is_none, is_true
from amp_migrate.flow.assumption import NOTHING, Assumption, Known, Truth
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.terms import term
from amp_migrate.project import Function, Module, Project


def installed(project: Project, function: Function, *, there: bool = True) -> Assumption:
    """Return what is known of the names of a function where Apex is installed, or is not."""
    found = NOTHING
    if "apex" not in function.module.tree.text:
        return found
    seen: set[str] = set()
    for node in function.all_nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in seen:
            seen.add(node.id)
            told = _tells(project, function, node) or (there and _is_module(function, node))
            if told and (spelled := term(node)) is not None:
                none = not there and _is_emptied(function, node)
                found = found.with_fact(spelled, Known(None) if none else Truth(there))
            elif not told and lacks(function, node) and (spelled := term(node)) is not None:
                found = found.with_fact(spelled, Known(not there))
    return found


def unsettled(test: ast.expr, known: Assumption) -> ast.expr:
    """Return a test without the parts of it that are known, as far as `and`, `or` and `not` join them."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ast.UnaryOp(test.op, unsettled(test.operand, known))
    if not isinstance(test, ast.BoolOp):
        return test
    kept = [unsettled(v, known) for v in test.values if evaluate(v, known) is None]
    return kept[0] if len(kept) == 1 else ast.BoolOp(test.op, kept or test.values)


def _is_emptied(function: Function, name: ast.Name) -> bool:
    """Tell whether a name is None wherever Apex cannot be imported."""
    module = function.module
    bindings = module.scopes.bound(name)
    ups = [module.tree.parent(b) for b in bindings]
    values = [up.value for up in ups if isinstance(up, ast.Assign | ast.AnnAssign)]
    return bool(values) and all(map(is_none, values))


def _tells(project: Project, function: Function, name: ast.Name) -> bool:
    """Tell whether a name is bound to something, or to True, exactly where Apex can be imported."""
    module = function.module
    bindings = module.scopes.bound(name)
    tries = [module.tree.enclosing(binding, ast.Try) for binding in bindings]
    sure = [t for t in tries if t is not None and _imports_apex(t)]
    if not sure:
        return False
    handled = {part for t in sure for h in t.handlers for part in every(h)}
    set_before = {b for b in bindings if _is_set_before(module, b, bindings, sure)}
    there = [
        b
        for b in bindings
        if b not in handled | set_before and not _only_from(project, module, b, handled)
    ]
    return bool(there) and all(_is_there(module.tree.parent(b), b) for b in there)


def lacks(function: Function, name: ast.Name) -> bool:
    """Tell whether a name is bound to True exactly where Apex cannot be imported, and to False where it can."""
    tree, bindings = function.module.tree, function.module.scopes.bound(name)
    around = {tree.enclosing(binding, ast.Try) for binding in bindings}
    guard = around.pop() if len(around) == 1 else None
    if guard is None or not _imports_apex(guard):
        return False
    handled = {part for handler in guard.handlers for part in every(handler)}
    ups = [(binding in handled, tree.parent(binding)) for binding in bindings]
    return {late for late, _ in ups} == {True, False} and all(
        isinstance(up, ast.Assign) and (is_true if late else is_false)(up.value) for late, up in ups
    )


def _is_set_before(
    module: Module, binding: ast.AST, bindings: Collection[ast.AST], tries: Collection[ast.Try]
) -> bool:
    """Tell whether a name is false in front of a `try` that binds it again as soon as Apex is imported."""
    tree = module.tree
    statement = tree.statement(binding)
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if not is_false(value) and not is_none(value):
        return False
    later = tree.block(statement)[tree.block(statement).index(statement) + 1 :]
    again = [tree.statement(b) for b in bindings if b is not binding]
    return any(t in later and any(s in (*t.body, *t.orelse) for s in again) for t in tries)


def _is_module(function: Function, name: ast.Name) -> bool:
    """Tell whether a name is bound by imports of Apex alone: what reads it finds a module, if anything."""
    module = function.module
    bindings = module.scopes.bound(name)
    return bool(bindings) and all(_of_apex(module.tree.parent(b), b) for b in bindings)


def _of_apex(node: ast.AST | None, binding: ast.AST) -> bool:
    """Tell whether a part of an import binds a module of Apex, or something in one."""
    name = None
    if isinstance(node, ast.ImportFrom) and not node.level:
        name = node.module
    elif isinstance(node, ast.Import) and isinstance(binding, ast.alias):
        name = binding.name
    return (name or "").partition(".")[0] == "apex"


def _only_from(project: Project, module: Module, binding: ast.AST, nodes: set[ast.AST]) -> bool:
    """Tell whether a binding stands in a function that only some nodes call."""
    function = project.function_of(module, binding)
    callers = project.callers(function) if function.node is not None else []
    return bool(callers) and all(site.call in nodes for site in callers)


def _is_there(up: ast.AST | None, binding: ast.AST) -> bool:
    if isinstance(binding, ast.alias) or isinstance(up, ast.ImportFrom | ast.Import):
        return True
    value = up.value if isinstance(up, ast.Assign | ast.AnnAssign) else None
    return is_true(value)


def _imports_apex(node: ast.Try) -> bool:
    imports = (
        part
        for s in node.body
        for part in every(s)
        if isinstance(part, ast.Import | ast.ImportFrom)
    )
    return any(_of_apex(part, alias) for part in imports for alias in part.names)
