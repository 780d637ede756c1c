"""Classes that share the attributes of their objects, bases and subclasses, and what their properties read."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple

from amp_migrate.facts.below import every
from amp_migrate.facts.paths import mentions, path
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.order import Loop


def family(cls: Class) -> list[Class]:
    """Return a class with all whose methods may run on an object that its own methods run on.

    Two classes that only have a base in common are no relatives: no object is of both.
    """
    found = {member: None for below in (cls, *cls.subclasses()) for member in below.mro()}
    return list({cls: None, **found})


def runs(cls: Class, method: Function) -> bool:
    """Tell whether the objects of a class run a method of it or of a base, if only by ``super()``."""
    for owner in cls.mro():
        own = owner.methods.get(method.name)
        if own is method:
            return True
        if own is not None and not mentions(own.scope, "super"):
            return False
    return False


def sets(cls: Class, name: str) -> bool:
    """Tell whether the methods of a class or of a base set an attribute of a name, of whatever object."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
        for owner in cls.mro()
        for node in every(owner.node)
    )


def properties(project: Project, function: Function, text: str) -> Iterator[Function]:
    """Yield the properties that an attribute which a function reads may be."""
    parts = (n for n in function.own_nodes if isinstance(n, ast.Attribute))
    reads = [n for n in parts if isinstance(n.ctx, ast.Load) and ast.unparse(n) == text][:1]
    classes = [(c, n.attr) for n in reads for c in _classes(project, function.module, n.value)]
    for method in dict.fromkeys(c.method(name) for c, name in classes):
        if method is not None and method.is_property and method is not function:
            yield method


def in_class_of(
    project: Project, module: Module, node: ast.expr, stored: list[tuple[Module, ast.Attribute]]
) -> list[tuple[Module, ast.Attribute]]:
    """Return those of some stores that methods make into an attribute of the objects of a class that it is read from."""
    classes = (
        project.instance_classes(module, node.value) if isinstance(node, ast.Attribute) else []
    )
    owners = {owner for cls in classes for owner in cls.mro()}
    holders = ((m, t, project.function_of(m, t)) for m, t in stored) if owners else ()
    return [(m, t) for m, t, f in holders if f.cls in owners and f.is_receiver(t.value)]


def apart(
    project: Project, module: Module, ones: Collection[ast.expr], where: Module, other: ast.expr
) -> bool:
    """Tell whether an expression surely holds another object than some that hold the same one.

    Methods of related classes may run on one object, whatever each of them calls it.
    """
    values, other = project.values, _of_class(other)
    objects = {group for node in ones for group in values.groups(module, node)}
    holders = values.groups(where, other)
    if not objects or not holders or objects & holders:
        return False
    return not any(are_related(project, module, node, where, other) for node in ones)


def are_related(
    project: Project, module: Module, one: ast.expr, where: Module, other: ast.expr
) -> bool:
    """Tell whether methods of the classes of two expressions may run on one object."""
    related = {relative for cls in _classes(project, module, one) for relative in family(cls)}
    return not related.isdisjoint(_classes(project, where, other))


def _of_class(node: ast.expr) -> ast.expr:
    """Return the object whose class an expression is, which holds what its object has: ``type(self)``; else itself."""
    if isinstance(node, ast.Attribute) and node.attr == "__class__":
        return node.value
    is_type = isinstance(node, ast.Call) and path(node.func) == "type" and len(node.args) == 1
    return node.args[0] if isinstance(node, ast.Call) and is_type else node


def _classes(project: Project, module: Module, node: ast.expr) -> list[Class]:
    """Return the classes whose objects an expression may hold, that of the method of which it is the receiver included."""
    function = project.function_of(module, node)
    own = [function.cls] if function.cls is not None and function.is_receiver(node) else []
    named = project.resolve(module, node)
    own += [named] if isinstance(named, Class) else []
    return [*own, *project.values.instance_classes(module, node)]


class Same(NamedTuple):
    """A variable that holds one object all along, which is of a class."""

    variable: ast.Name
    cls: Class

    def run(self, call: ast.Call, callees: list[Function]) -> list[Function]:
        """Return which of some functions a call runs: of methods of the object that of its class."""
        func = call.func
        if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
            return callees
        method = self.cls.method(func.attr) if func.value.id == self.variable.id else None
        return [method] if method in callees else callees


def same(project: Project, function: Function, call: ast.Call) -> list[Same]:
    """Return the classes, of several, that the object of a method call may be of, where its variable gets one object once."""
    module, func = function.module, call.func
    name = func.value if isinstance(func, ast.Attribute) else None
    if not isinstance(name, ast.Name) or module.scopes.owner(name) is not function.scope:
        return []
    bound, classes = module.scopes.bound(name), project.instance_classes(module, name)
    looped = any(isinstance(up, Loop) for node in bound for up in module.tree.ancestors(node))
    if len(bound) != 1 or looped or len(classes) < 2:
        return []
    return [Same(name, cls) for cls in classes]
