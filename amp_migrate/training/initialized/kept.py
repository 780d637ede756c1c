"""Attributes that keep what constructors are handed, for as long as their objects last: ``self.model = model``."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.reach import where_set
from amp_migrate.training.forwards.classes import is_network_class
from amp_migrate.training.origins.reaching import Reaching


class Parameter(NamedTuple):
    """A parameter of a constructor."""

    function: Function
    name: str


def kept(
    project: Project, reaching: Reaching, function: Function, node: ast.expr
) -> list[Parameter]:
    """Return the parameters of which an attribute of a method's object has its value, if it never has another one.

    Nothing for a network, which may be a part of another one, and for a variable that may hold something else.
    """
    if isinstance(node, ast.Name):
        held = reaching.of(function, node)
        if len(held) != 1 or not isinstance(held[0], ast.Attribute):
            return []
        node = held[0]
    if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
        return []
    cls = function.cls
    if cls is None or is_network_class(cls):
        return []
    found: list[Parameter] = []
    for module, target in where_set(project, node.attr):
        where = project.function_of(module, target)
        if not where.is_receiver(target.value):
            if _may_be(project, module, target.value, cls):
                return []
        elif where.cls is not None and _are_related(where.cls, cls):
            parameter = _parameter(reaching, where, assigned(module.tree, target))
            if parameter is None:
                return []
            found.append(parameter)
    return found


def _parameter(reaching: Reaching, where: Function, value: ast.expr | None) -> Parameter | None:
    """Return the parameter of a constructor that it keeps."""
    if where.name != "__init__" or not isinstance(value, ast.Name):
        return None
    held = reaching.of(where, value)
    only = held[0] if len(held) == 1 else None
    return Parameter(where, only.arg) if isinstance(only, ast.arg) else None


def _may_be(project: Project, module: Module, node: ast.expr, cls: Class) -> bool:
    """Tell whether an expression may hold an object of a class: one that is seen to hold others does not."""
    classes = project.instance_classes(module, node)
    return not classes or any(_are_related(each, cls) for each in classes)


def _are_related(one: Class, other: Class) -> bool:
    return one in other.mro() or other in one.mro()
