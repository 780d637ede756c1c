"""What is private to Apex and does nothing for a program: a ``LossScaler`` that nothing asks, a version that is printed."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import all_given, path
from amp_migrate.modules.binding import bind
from amp_migrate.project import Function, Module, Project
from amp_migrate.source.mentions import LOGS, TEXTS


def is_unread(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether nothing uses what a call makes: it is stored, or given to functions that never look at it."""
    given = all_given(call)
    if any(isinstance(n, ast.Call | ast.NamedExpr) for part in given for n in ast.walk(part)):
        return False
    stmt = module.tree.parent(call)
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1:
        return False
    target = stmt.targets[0]
    if isinstance(target, ast.Attribute):
        return _on_self(project, module, target) and not _is_read(project, target.attr)
    return isinstance(target, ast.Name) and all(
        _is_ignored(project, module, node) for node in _loads(project, module, target)
    )


def is_only_told(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether a statement that does no more than print or log holds a node which nothing calls."""
    statement = module.tree.statement(node)
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    told = statement.value
    if not _tells(project, module, told.func):
        return False
    calls = [n for n in ast.walk(told) if isinstance(n, ast.Call) and n is not told]
    return all(_is_text(module, call) for call in calls)


def _tells(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether a function is `print`, or one that logs."""
    name = project.external(module, func)
    if module.scopes.builtin(func) == "print" or (name or "").startswith("logging."):
        return True
    if not isinstance(func, ast.Attribute) or func.attr not in LOGS:
        return False
    return "logging.getLogger" in project.values.made_by(module, func.value)


def _is_text(module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes a text: of a constant, or by a function of Python."""
    if isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Constant)
    return module.scopes.builtin(call.func) in TEXTS


def is_given_on(module: Module, call: ast.Call) -> bool:
    """Tell whether the variable that holds an unread loss scaler stands in calls, and must stay."""
    stmt = module.tree.parent(call)
    target = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
    return isinstance(target, ast.Name) and any(
        n.id == target.id and isinstance(n.ctx, ast.Load) for n in module.tree.nodes(ast.Name)
    )


def _on_self(project: Project, module: Module, target: ast.Attribute) -> bool:
    return project.function_of(module, target).is_receiver(target.value)


def _is_read(project: Project, name: str) -> bool:
    """Tell whether a project does more than assign to an attribute of some name, or says the name in a string."""
    for module in project.modules.values():
        if name not in module.tree.text:
            continue
        for node in module.tree.attributes(name):
            if not isinstance(module.tree.parent(node), ast.Assign):
                return True
            if not isinstance(node.ctx, ast.Store):
                return True
        if module.tree.says(name):
            return True
    return False


def _loads(project: Project, module: Module, target: ast.Name) -> list[ast.Name]:
    """Return the reads of a variable; its own name where another file, or a string, may read it."""
    owner = module.scopes.owner(target)
    others = [m for m in project.modules.values() if m is not module and target.id in m.tree.text]
    shared = owner is module.tree.module and any(_takes(other, target.id) for other in others)
    if shared or module.tree.says(target.id):
        return [target]
    return [
        n
        for n in module.scopes.spelt(owner, target.id)
        if not (isinstance(n.ctx, ast.Store) and isinstance(module.tree.parent(n), ast.Assign))
    ]


def _takes(module: Module, name: str) -> bool:
    return (
        bool(module.scopes.stars)
        or any(alias.name == name for alias in module.tree.nodes(ast.alias))
        or any(isinstance(node.ctx, ast.Load) for node in module.tree.attributes(name))
    )


def _is_ignored(project: Project, module: Module, node: ast.Name) -> bool:
    """Tell whether a variable is an argument of a function that never looks at it, or that cannot be imported."""
    call = module.tree.user(node)
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    callees = project.callees(call)
    if not callees:
        return _is_missing(project, module, call.func)
    return all(_never_looks(project, call, node, callee) for callee in callees)


def _never_looks(project: Project, call: ast.Call, node: ast.Name, callee: Function) -> bool:
    site = project.site(call, callee)
    given = bind(site, callee).given if site is not None else {}
    names = {name for name, value in given.items() if value is node}
    return bool(names) and all(
        not _mentions(member, name)
        for member in project.family(callee) or [callee]
        for name in names
    )


def _mentions(function: Function, name: str) -> bool:
    body = function.node.body if function.node is not None else []
    return any(
        isinstance(n, ast.Name) and n.id in (name, "locals", "vars")
        for stmt in body
        for n in ast.walk(stmt)
    )


def _is_missing(project: Project, module: Module, func: ast.expr) -> bool:
    """Tell whether a name is imported from a file of the project that has no such name: the import raises."""
    if not isinstance(func, ast.Name):
        return False
    bindings = module.scopes.bindings(module.tree.module, func.id)
    alias = bindings[0] if len(bindings) == 1 else None
    statement = module.tree.parent(alias) if isinstance(alias, ast.alias) else None
    if not isinstance(alias, ast.alias) or not isinstance(statement, ast.ImportFrom):
        return False
    if statement not in module.tree.module.body:
        return False
    source = project.lookup.source(module, statement)
    if not isinstance(source, Module) or project.lookup.imported(module, alias):
        return False
    scopes = source.scopes
    top = source.tree.module
    bound = scopes.bindings(top, alias.name) or scopes.bindings(top, "__getattr__")
    return not bound and not scopes.stars and not _binds_by_name(source)


def _binds_by_name(module: Module) -> bool:
    calls = {path(call.func) for call in module.tree.nodes(ast.Call)}
    return bool(calls & {"globals", "exec", "setattr", "vars"})
