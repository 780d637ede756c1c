"""Expressions that mean at a step what they meant where the optimizer was made."""

from __future__ import annotations

import ast

from amp_migrate.flow import Graphs, Kind
from amp_migrate.older.found import Found
from amp_migrate.project import Function, Module

_PARTS = (
    ast.Name,
    ast.Attribute,
    ast.Constant,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Compare,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
    ast.expr_context,
)


def readable(found: Found, made: ast.expr, here: Module, step: ast.Call, there: Module) -> bool:
    """Tell whether an expression of one place can be written at a step, and gives the same there."""
    if not all(isinstance(part, _PARTS) for part in ast.walk(made)):
        return False
    maker = found.project.function_of(here, made)
    stepper = found.project.function_of(there, step)
    return not any(
        (isinstance(part, ast.Name) and not _same_name(found, part, maker, stepper))
        or (isinstance(part, ast.Name | ast.Attribute) and _set_behind(found, part, made, maker))
        for part in ast.walk(made)
    )


def _same_name(found: Found, name: ast.Name, maker: Function, stepper: Function) -> bool:
    """Tell whether a name means the same object in two functions."""
    owner = maker.module.scopes.owner(name)
    if maker is stepper:
        return True
    if maker.module is stepper.module and owner is not None:
        if stepper.module.scopes.find(stepper.scope, name.id) is owner:
            return True
    given = maker.parameters.names[:1], stepper.parameters.names[:1]
    if maker.cls is not None and maker.cls is stepper.cls and given == ((name.id,), (name.id,)):
        return True
    groups = found.groups(maker.module, name)
    return name.id in stepper.parameters.names and any(
        found.groups(stepper.module, node) & groups
        for node in stepper.module.tree.nodes(ast.Name)
        if node.id == name.id and stepper.module.scopes.owner(node) is stepper.scope
    )


def _set_behind(
    found: Found, part: ast.Name | ast.Attribute, made: ast.expr, maker: Function
) -> bool:
    """Tell whether a name or an attribute may be set once an expression of a function was read."""
    stores = _stores(found, part, maker)
    if stores is None:
        return True
    graph = Graphs().of(maker.scope)
    order = graph.order(False)
    starts = graph.at(made) or graph.at(part)
    points = [graph.at(node, Kind.STORE) or graph.at(node) for node in stores]
    return bool(stores) and (
        not starts
        or not all(points)
        or any(order.may_reach(start, p) for start in starts for found in points for p in found)
    )


def _stores(found: Found, part: ast.Name | ast.Attribute, maker: Function) -> list[ast.AST] | None:
    """Return where a function binds a variable, but as a parameter, or sets such an attribute; None where others may."""
    if isinstance(part, ast.Attribute):
        whose = found.groups(maker.module, part.value)
        stores = [
            (module, node)
            for module, node in found.attributes()
            if node.attr == part.attr and not isinstance(node.ctx, ast.Load)
            if not whose or not (own := found.groups(module, node.value)) or own & whose
        ]
        inside = all(found.project.function_of(module, node) is maker for module, node in stores)
        return [node for _, node in stores] if inside else None
    scopes = maker.module.scopes
    owner = scopes.owner(part)
    bindings = scopes.bound(part)
    if owner is not maker.scope:
        return [] if len(bindings) < 2 else None
    return [binding for binding in bindings if not isinstance(binding, ast.arg)]
