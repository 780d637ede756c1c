"""Classes that train without Apex where a relative of theirs trains with it: a run has objects of one of them."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.paths import walk
from amp_migrate.project import Class, Function
from amp_migrate.unit.relatives import runs
from amp_migrate.unit.unit import Unit


def is_alternative(unit: Unit, function: Function) -> bool:
    """Tell whether a method serves objects that scale no loss, while those of a relative have one of their own."""
    cls = function.cls
    if cls is None or function.name == "__init__":
        return False
    if any(site.function.cls in cls.mro() for site in unit.sites) or not _runs_backward(cls):
        return False
    sites = unit.of(Kind.INITIALIZE, Kind.SCALE_LOSS)
    return any(
        _instead(function, a) for a in {site.function.cls for site in sites} if a is not None
    )


def _runs_backward(cls: Class) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
        for owner in cls.mro()
        for method in owner.methods.values()
        for node in walk(method.scope)
    )


def _instead(function: Function, other: Class) -> bool:
    """Tell whether the objects of another class of the same base run a method of their own in place of one."""
    cls = function.cls
    own = other.method(function.name)
    shared = cls is not None and set(cls.mro()) & set(other.mro())
    below = (other, *other.subclasses())
    return (
        bool(shared) and own not in (None, function) and not any(runs(c, function) for c in below)
    )


def has_alternatives(unit: Unit, cls: Class) -> bool:
    """Tell whether calls that train through objects of a class may have others, which train without Apex."""
    below = (cls, *cls.subclasses())
    scaling = {site.function for site in unit.sites}
    own = {b.function for b in unit.backwards} | {s.function for s in unit.steps}
    for function in (f for f in own if any(runs(c, f) for c in below)):
        for site in unit.project.calls_of(function):
            for other in unit.project.callees(site.call):
                if other in scaling or _is_abstract(other):
                    continue
                if not any(runs(c, other) for c in below):
                    return True
    return False


def _is_abstract(function: Function) -> bool:
    """Tell whether a method only says that subclasses have one."""
    return all(
        isinstance(s, ast.Raise | ast.Pass | ast.Expr) for s in function.scope.body
    ) and not any(isinstance(node, ast.Attribute) for node in walk(function.scope))
