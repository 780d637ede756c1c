"""What `amp.initialize` was given for the loss scale, as far as it can be read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.facts.paths import argument, tail
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.project import Class, Module, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.origins.meant import meant

POSITIONS = {"loss_scale": 8, "min_loss_scale": 12, "max_loss_scale": 13}


def stated(project: Project, item: Initialize, name: str) -> list[ast.expr]:
    """Return what an argument of `amp.initialize` may be, as far as dictionaries that hold it can be read."""
    direct = argument(item.call, name, POSITIONS[name])
    if direct is not None:
        return [direct]
    options = [k.value for k in item.call.keywords if k.arg is None]
    seen: set[ast.AST] = set()
    module = item.function.module
    found = [value for node in options for value in _held(project, module, node, name, seen)]
    read = [ast.Subscript(node, ast.Constant(name), ast.Load()) for node in options]
    return [*found, *read] if found else []


def _held(
    project: Project, module: Module, node: ast.expr, name: str, seen: set[ast.AST]
) -> Iterator[ast.expr]:
    """Yield what a dictionary may hold under a name."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Dict):
        for entry, value in zip(node.keys, node.values, strict=True):
            if entry is None:
                yield from _held(project, module, value, name, seen)
            elif isinstance(entry, ast.Constant) and entry.value == name:
                yield value
    elif isinstance(node, ast.Call) and tail(node) == "dict":
        yield from (k.value for k in node.keywords if k.arg == name)
    elif isinstance(node, ast.Call):
        for callee in project.callees(node):
            for given in returned(callee):
                yield from _held(project, callee.module, given, name, seen)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        bound = (*_elsewhere(project, module, node), *_items(project, module, node))
        for found in (*meant(project, module, node), *bound):
            if found is not None:
                yield from _held(project, project.module_of(found), found, name, seen)
        yield from _put(project, module, node, name, seen)


def _elsewhere(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what variables of other files, and those of classes, were assigned."""
    if isinstance(node, ast.Attribute):
        for base in project.lookup.expression(module, node.value):
            if isinstance(base, Module | Class):
                scope = base.tree.module if isinstance(base, Module) else base.node
                where = base if isinstance(base, Module) else base.module
                yield from _assigned(where, scope, node.attr)
        for where in project.modules.values():
            for cls in where.tree.nodes(ast.ClassDef):
                yield from _assigned(where, cls, node.attr)
    for alias in module.scopes.bound(node) if isinstance(node, ast.Name) else ():
        up = module.tree.parent(alias)
        source = project.lookup.source(module, up) if isinstance(up, ast.ImportFrom) else None
        if isinstance(alias, ast.alias) and isinstance(source, Module):
            yield from _assigned(source, source.tree.module, alias.name)


def _assigned(module: Module, scope: ScopeNode, name: str) -> Iterator[ast.expr]:
    for binding in module.scopes.bindings(scope, name):
        value = assigned(module.tree, binding)
        if value is not None:
            yield value


def _items(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr]:
    """Yield what is assigned to an item that is read."""
    for where in project.modules.values() if isinstance(node, ast.Subscript) else ():
        for assign in where.tree.nodes(ast.Assign):
            for target in assign.targets:
                stored = isinstance(target, ast.Subscript)
                if stored and project.values.same(module, node, where, target):
                    yield assign.value


def _put(
    project: Project, module: Module, node: ast.expr, name: str, seen: set[ast.AST]
) -> Iterator[ast.expr]:
    """Yield what a dictionary is given under a name, as an item or by an update."""
    same = project.values.same
    for where in project.modules.values():
        for assign in where.tree.nodes(ast.Assign):
            for target in assign.targets:
                if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                    if target.slice.value == name and same(module, node, where, target.value):
                        yield assign.value
        for call in where.tree.nodes(ast.Call):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "update":
                if same(module, node, where, call.func.value):
                    yield from (k.value for k in call.keywords if k.arg == name)
                    for given in call.args:
                        yield from _held(project, where, given, name, seen)
