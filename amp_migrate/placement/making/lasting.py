"""Whether what an initialize asked may come out otherwise later, while AMP stays as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import mentions, same
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.later import Later
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside
from amp_migrate.project.reach import reached_by
from amp_migrate.project.relatives import apart


def changed(unit: Unit, site: Site, text: str) -> ast.AST | None:
    """Return what may set a part of a condition once an initialize has run; None if nothing does."""
    function = site.function
    later = Later(unit.project, (function, site.node))
    condition = ast.parse(text, mode="eval")
    there = {
        node.left
        for node in ast.walk(condition)
        if isinstance(node, ast.Compare) and is_none(node.comparators[0])
    }
    for part in ast.walk(condition):
        if isinstance(part, ast.Name):
            for holder, binding in _bindings(unit, function, part.id):
                here = function.module.tree.statement(binding) is site.statement
                if (here or part in there) and _remakes(holder.module, binding):
                    continue
                ours = holder is function and function.node is not None
                if later.lasts(holder, binding) and (not ours or later.follows(holder, binding)):
                    return binding
        elif isinstance(part, ast.Attribute | ast.Subscript):
            for module, stored in _stores(unit, function, part):
                holder = unit.project.function_of(module, stored)
                if not _is_made(module, stored) and later.lasts(holder, stored):
                    return stored
    return None


def set_within(unit: Unit, function: Function, top: ast.stmt, value: ast.expr) -> bool:
    """Tell whether a statement of a function, or what it runs, may set what an expression of the function reads."""
    tree = function.module.tree
    calls = (node for node in ast.walk(top) if isinstance(node, ast.Call))
    run = {below for call in calls for below in reached_by(unit.project, call)}
    for part in ast.walk(value):
        stores: list[tuple[Function, ast.AST]] = []
        if isinstance(part, ast.Name):
            stores += _bindings(unit, function, part.id)
        elif isinstance(part, ast.Attribute | ast.Subscript):
            found = _stores(unit, function, part)
            stores += [(unit.project.function_of(module, node), node) for module, node in found]
        if any(where in run or inside(tree, node, top) for where, node in stores):
            return True
    return False


def _bindings(unit: Unit, function: Function, name: str) -> Iterator[tuple[Function, ast.AST]]:
    """Yield what binds a variable that a function sees, but for parameters, imports and definitions."""
    module = function.module
    scope = module.scopes.find(function.scope, name)
    for binding in module.scopes.bindings(scope, name) if scope is not None else ():
        if isinstance(binding, ast.Name | ast.Subscript):
            yield unit.project.function_of(module, binding), binding


def _remakes(module: Module, binding: ast.AST) -> bool:
    """Tell whether what a variable gets is an object made of what it held: that is there where the other one was."""
    name = binding.id if isinstance(binding, ast.Name) else ""
    value = getattr(module.tree.statement(binding), "value", None)
    return isinstance(value, ast.Call) and mentions(value, name)


def _stores(
    unit: Unit, function: Function, part: ast.Attribute | ast.Subscript
) -> Iterator[tuple[Module, ast.Attribute | ast.Subscript]]:
    """Yield what may set an attribute or item of the object of which a condition asks it."""
    ones = [
        node for node in function.own_nodes if isinstance(node, ast.expr) and same(node, part.value)
    ]
    for module, target in _assigned(unit, part):
        if not apart(unit.project, function.module, ones, module, target.value):
            yield module, target


def _assigned(
    unit: Unit, part: ast.Attribute | ast.Subscript
) -> Iterator[tuple[Module, ast.Attribute | ast.Subscript]]:
    if isinstance(part, ast.Attribute):
        for module, stored, _ in unit.losses.objects.stored.get(part.attr, ()):
            yield module, stored
        return
    for module, item in unit.project.nodes(ast.Subscript):
        if isinstance(item.ctx, ast.Store) and same(item.slice, part.slice):
            yield module, item


def _is_made(module: Module, target: ast.Attribute | ast.Subscript) -> bool:
    """Tell whether a constructor sets what it sets on the object that it makes."""
    function = module.tree.function(target)
    if not isinstance(function, ast.FunctionDef) or function.name != "__init__":
        return False
    receiver = next((a.arg for a in function.args.args), None)
    return isinstance(target.value, ast.Name) and target.value.id == receiver
