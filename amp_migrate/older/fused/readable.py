"""Expressions that mean at a step what they meant where the optimizer was made."""

from __future__ import annotations

import ast

from amp_migrate.facts.variables import put_in
from amp_migrate.flow import Graphs, Kind, leads
from amp_migrate.older.found import Found
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import where_set

_PARTS = (
    ast.Name, ast.Attribute, ast.Constant, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.boolop, ast.unaryop,
    ast.cmpop, ast.expr_context,
)  # fmt: skip


def readable(
    found: Found, made: ast.expr, here: Module, step: ast.Call, there: Module
) -> ast.expr | None:
    """Return an expression of one place as it is written at a step; None where it may give something else there."""
    if not all(isinstance(part, _PARTS) for part in ast.walk(made)):
        return None
    maker = found.project.function_of(here, made)
    stepper = found.project.function_of(there, step)
    names: dict[str, ast.expr] = {}
    for part in ast.walk(made):
        if isinstance(part, ast.Name | ast.Attribute) and _set_behind(found, part, made, maker):
            return None
        if isinstance(part, ast.Name):
            known = _same_name(found, part, maker, stepper)
            spelled = part if known else _kept(found, part, maker, stepper)
            if spelled is None:
                return None
            names[part.id] = spelled
    return put_in(made, names) if names else made


def _same_name(found: Found, name: ast.Name, maker: Function, stepper: Function) -> bool:
    """Tell whether a name means the same object in two functions."""
    owner = maker.module.scopes.owner(name)
    if maker is stepper:
        return True
    scopes = stepper.module.scopes
    there = scopes.find(stepper.scope, name.id)
    if maker.module is stepper.module and owner is not None and there is owner:
        return True
    given = maker.parameters.names[:1], stepper.parameters.names[:1]
    if maker.cls is not None and maker.cls is stepper.cls and given == ((name.id,), (name.id,)):
        return True
    if there is None or len(scopes.bindings(there, name.id)) != 1:
        return False
    groups = found.groups(maker.module, name)
    return any(found.groups(stepper.module, node) & groups for node in scopes.spelt(there, name.id))


def _kept(found: Found, name: ast.Name, maker: Function, stepper: Function) -> ast.expr | None:
    """Return the attribute of its object in which the function that steps reads what a name holds, if it is set once."""
    groups = found.groups(maker.module, name)
    reads = (n for n in stepper.own_nodes if isinstance(n, ast.Attribute))
    for node in reads:
        own = isinstance(node.value, ast.Name) and node.value.id == stepper.receiver
        if own and found.groups(stepper.module, node) & groups:
            return node if len(_stored(found, stepper.module, node)) == 1 else None
    return None


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
        not starts or not all(points) or any(leads(order, starts, found) for found in points)
    )


def _stores(found: Found, part: ast.Name | ast.Attribute, maker: Function) -> list[ast.AST] | None:
    """Return where a function binds a variable, but as a parameter, or sets such an attribute; None where others may."""
    if isinstance(part, ast.Attribute):
        stores = _stored(found, maker.module, part)
        inside = all(found.project.function_of(module, node) is maker for module, node in stores)
        return [node for _, node in stores] if inside else None
    scopes = maker.module.scopes
    owner = scopes.owner(part)
    bindings = scopes.bound(part)
    if owner is not maker.scope:
        return [] if len(bindings) < 2 else None
    return [binding for binding in bindings if not isinstance(binding, ast.arg)]


def _stored(
    found: Found, module: Module, part: ast.Attribute
) -> list[tuple[Module, ast.Attribute]]:
    """Return where such an attribute is set, of an object that may be the same."""
    whose = found.groups(module, part.value)
    return [
        (where, node)
        for where, node in where_set(found.project, part.attr)
        if not whose or not (own := found.groups(where, node.value)) or own & whose
    ]
