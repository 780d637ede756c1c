"""Classes whose objects stand where those of a class that makes the GradScaler do, and make none themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path
from amp_migrate.placement.finding.alternatives import makers, refuse_beside
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Class, Function, Module
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import family, runs, sets
from amp_migrate.scaler.home import Home
from amp_migrate.scaler.reach.in_reach import objects


def lacking(home: Home) -> list[Class]:
    """Return the classes that need a disabled GradScaler as an attribute, for objects without one of their own.

    Raises `Cannot` where no class is common to the objects that a function may have, and where one run has both.
    """
    made = {
        cls
        for cls, calls in makers(home.project).items()
        if not all(f.is_class and f.is_receiver(call.func) for f, call in calls)
    }
    found: dict[Class, None] = {}
    without: dict[Class, None] = {}
    for function, nodes in home.users.items():
        for member in _objects(home, function, home.resolved.get(function, "")):
            stays = member.module.path in home.beside.leaving  # it must raise there
            lacks = not stays and not _keeps(home, member)
            if lacks and (member in made or not member.children):
                found[_common(home, function, nodes[0], member)] = None
                without[member] = None
    if without:
        refuse_beside(home.project, home.keepers, without)
    return [cls for cls in found if not any(c in found for c in cls.mro() if c is not cls)]


def _keeps(home: Home, member: Class) -> bool:
    """Tell whether objects of a class have a scaler of their own; what makes one for its bases may never run on them."""
    held = home.keepers & set(member.mro())
    if any("__slots__" in base.module.scopes.names(base.node) for base in held):
        return True  # an attribute of the class cannot be one of its slots
    making = [f for f in home.inits if f.cls in held]
    if any(all(f.cls is not cls for f in making) for cls in held):
        return True
    return any(_runs_on(home, function, member, frozenset()) for function in making)


def _runs_on(home: Home, function: Function, member: Class, below: frozenset[Function]) -> bool:
    """Tell whether a method may run on objects of a class: it is theirs, or what overrides it calls it, and something else does."""
    project, own = home.project, member.method(function.name)
    if own is not function:
        return own is not None and function in reachable(project, own)
    callers = [site.function.method for site in project.callers(function)]
    return not callers or any(
        caller.cls not in member.mro() or _runs_on(home, caller, member, below | {function})
        for caller in callers
        if caller not in below
    )


def _objects(home: Home, function: Function, text: str) -> Iterator[Class]:
    """Yield the classes of the objects through which a function reaches the scaler."""
    owner, _, name = text.rpartition(".")
    method = function.method
    if name != home.name or not owner or function in home.carriers.paths:
        return
    if method.cls is not None and method.receiver == owner:
        if home.keepers & set(family(method.cls)):
            yield from (c for c in (method.cls, *method.cls.subclasses()) if runs(c, method))
        return
    scopes: list[tuple[Module, ast.AST]] = [(function.module, function.scope)]
    if method.cls is not None:
        scopes += [(cls.module, cls.node) for cls in method.cls.mro()]
    for module, scope in scopes:
        for node in ast.walk(scope):
            if isinstance(node, ast.Name | ast.Attribute) and path(node) == owner:
                for cls in objects(home.project, module, node):
                    yield from (cls, *cls.subclasses())


def _common(home: Home, function: Function, node: ast.AST, member: Class) -> Class:
    """Return the nearest class of an object that the objects with a scaler have as well."""
    bases = {base for keeper in home.keepers for base in keeper.mro()}
    common = next((cls for cls in member.mro() if cls in bases), None)
    keeper = min((cls.qualname for cls in home.keepers), default="class that has one")
    if common is None or sets(member, home.name):
        raise Cannot(
            "AMP901",
            *function.at(node),
            f"this may be a {member.qualname}, which has no GradScaler, instead of a {keeper}",
            f"let {member.qualname} and {keeper} inherit from one class, then run again",
        )
    return common
