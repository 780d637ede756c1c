"""Classes that share their attributes: bases and subclasses."""

from __future__ import annotations

import ast

from amp_migrate.project import Class, Function, Module, Project


def family(cls: Class) -> list[Class]:
    """Return a class with its known bases and all that derive from them or it."""
    found: list[Class] = []
    stack = [cls]
    while stack:
        here = stack.pop()
        if here not in found:
            found.append(here)
            stack += [*here.bases, *here.subclasses()]
    return found


def class_around(function: Function) -> Class | None:
    """Return the class whose method a function is, or is nested in."""
    while function.cls is None and function.parent is not None:
        function = function.parent
    return function.cls


def is_unused(project: Project, cls: Class) -> bool:
    """Tell whether nothing in the files given makes, extends, imports or mentions a class: dead code."""
    registered = bool(cls.node.decorator_list)
    return (
        not cls.children
        and not registered
        and not any(_mentions(project, m, cls) for m in project.modules.values())
    )


def _mentions(project: Project, module: Module, cls: Class) -> bool:
    tree = module.tree
    if any(a.name == cls.name for n in tree.nodes(ast.ImportFrom) for a in n.names):
        return True
    if module is not cls.module:
        return False
    nodes: list[ast.expr] = [n for n in tree.nodes(ast.Name) if n.id == cls.name]
    nodes += [n for n in tree.nodes(ast.Attribute) if n.attr == cls.name]
    return bool(nodes)
