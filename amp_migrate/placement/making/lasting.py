"""Whether what an initialize asked may come out otherwise later, while AMP stays as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import looked_up, mentions, same, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.making.later import Later
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside, levels, position
from amp_migrate.project.reach import reached_by
from amp_migrate.project.relatives import apart
from amp_migrate.training.bindings import named, puts_back
from amp_migrate.training.flags.alike import Alike
from amp_migrate.training.flags.setting import Place, got, read, sets_any, setters

_READ = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.Compare, ast.BoolOp, ast.UnaryOp,
    ast.expr_context, ast.cmpop, ast.boolop, ast.unaryop,
)  # fmt: skip


def changed(unit: Unit, site: Site, text: str) -> ast.AST | None:
    """Return what may set a part of a condition once an initialize has run; None if nothing does."""
    later = Later(unit.project, (site.function, site.node))
    asked = read(unit.project, site.function, ast.parse(text, mode="eval"))
    found = (_changed(unit, later, site, where, node) for where, node in asked)
    return next((node for node in found if node is not None), None)


def _changed(
    unit: Unit, later: Later, site: Site, function: Function, condition: ast.AST
) -> ast.AST | None:
    there = {
        node.left
        for node in walk(condition)
        if isinstance(node, ast.Compare) and is_none(node.comparators[0])
    }
    for part in (node for node in walk(condition) if isinstance(node, ast.Name)):
        for holder, binding in _bindings(unit, function, part.id):
            here = function.module.tree.statement(binding) is site.statement
            if (here or part in there) and _remakes(holder.module, binding):
                continue
            if puts_back(holder.module, binding):
                continue
            ours = holder is function and function.node is not None
            if later.lasts(holder, binding) and (not ours or later.follows(holder, binding)):
                return binding
    setting = setters(unit.project, function, condition)
    for module, setter in Alike.of(unit.project).varying(setting):
        if later.lasts(unit.project.function_of(module, setter), setter):
            return setter
    return None


def set_within(unit: Unit, function: Function, top: ast.stmt, value: ast.expr) -> bool:
    """Tell whether a statement of a function, or what it runs, may set what an expression of the function reads."""
    tree = function.module.tree
    calls = (node for node in ast.walk(top) if isinstance(node, ast.Call))
    run = {below for call in calls for below in reached_by(unit.project, call)}
    for asked, node in read(unit.project, function, value):
        stores = [(unit.project.function_of(m, n), n) for m, n in _setting(unit, asked, node)]
        stores += [
            found
            for part in walk(node)
            if isinstance(part, ast.Name)
            for found in _bindings(unit, asked, part.id)
            if asked is function or found[0] is not asked
        ]
        if any(where in run or inside(tree, stored, top) for where, stored in stores):
            return True
    happens = [*ast.walk(top), *(node for body in run for node in body.own_nodes)]
    if any(map(sets_any, happens)) and any(map(_is_held, ast.walk(value))):
        return True
    if not any(_delegates(unit, function.module, part) for part in ast.walk(value)):
        return False
    stored = [(function.module, node) for node in ast.walk(top) if _is_store(node)]
    stored += [(body.module, node) for body in run for node in body.own_nodes if _is_store(node)]
    return not all(_is_alone(unit, module, node) for module, node in stored)


def _is_store(node: ast.AST) -> bool:
    target = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
    return target and isinstance(getattr(node, "ctx", None), ast.Store)


def _is_alone(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether what is stored is a variable of a function that no other function reads."""
    if not isinstance(node, ast.Name) or not module.scopes.is_local(node):
        return False
    read = module.scopes.reads(module.scopes.owner(node), node.id)
    home = unit.project.function_of(module, node)
    return all(unit.project.function_of(module, one) is home for one in read)


def given_once(unit: Unit, site: Site, name: str) -> ast.expr | None:
    """Return what a variable of the function of an initialize is given, once and before that, and what it still is by then."""
    function, tree = site.function, site.module.tree
    ours = named(function, name)
    if not isinstance(ours, ast.Name) or function.node is None:
        return None
    value = site.module.scopes.only_value(ours)
    if value is None or not _is_read_off(value):
        return None
    given = tree.statement(value)
    block = tree.block(given)
    above = [stmt for stmt in levels(tree, site.node) if stmt in block]
    if not above or site.module.scopes.owner(ours) is not function.scope:
        return None
    between = block[position(tree, given) + 1 : position(tree, above[0]) + 1]
    if given in above or position(tree, given) > position(tree, above[0]):
        return None
    return None if any(set_within(unit, function, s, value) for s in between) else value


def _is_read_off(value: ast.expr) -> bool:
    """Tell whether a value is made of variables, attributes and constants that are compared and joined alone."""
    return all(isinstance(node, _READ) for node in walk(value))


def _setting(unit: Unit, function: Function, node: ast.AST) -> Iterator[Place]:
    """Yield what may set an attribute or item that an expression of a function reads, constructors included."""
    yield from setters(unit.project, function, node, making=True)
    for part in walk(node):
        if isinstance(part, ast.Attribute | ast.Subscript):
            yield from _stores(unit, function, part)
        elif (named := got(part)) is not None:
            yield from setters(unit.project, function, named, making=True)
            yield from _stores(unit, function, named)


def _delegates(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether an attribute may be one that its object computes when it is asked for."""
    held = [node.value] if isinstance(node, ast.Attribute) else []
    classes = [cls for value in held for cls in unit.project.instance_classes(module, value)]
    return any(cls.method("__getattr__") or cls.method("__getattribute__") for cls in classes)


def _is_held(node: ast.AST) -> bool:
    """Tell whether a value is read off an object."""
    return isinstance(node, ast.Attribute | ast.Subscript) or looked_up(node) is not None


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
