"""The scaler for an evaluation, which may run before or without any training."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import is_attribute_of, path
from amp_migrate.facts.scopes import assigned
from amp_migrate.placement.making.climbing import reaches
from amp_migrate.placement.making.creation import Creation
from amp_migrate.placement.making.lacking import lacking
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import CallSite, Class, Function, Module
from amp_migrate.project.order import common, dominates
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import family
from amp_migrate.scaler.home import Home
from amp_migrate.scaler.reach import in_reach
from amp_migrate.scaler.reach.missing import refuse_missing
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.forwards.classes import is_network_class
from amp_migrate.training.origins.meant import held
from amp_migrate.training.steps import children_of

_AT_TIMES = (ast.BoolOp, ast.If, ast.IfExp, ast.Lambda, ast.Try)


def at_hand(home: Home, function: Function, node: ast.AST, creations: list[Creation]) -> str | None:
    """Return how an evaluation reaches the scaler, if it need not be handed on further than one call.

    An evaluation may run before or without any training, so what only training makes does not count.
    """
    if function not in home.resolved or function in home.elsewhere.found:
        imported = home.elsewhere.reached(function, node)
        if imported is not None:
            home.resolved[function] = imported
            home.users.setdefault(function, []).append(node)
            return imported
    if home.module_level:
        return _of_file(home, function, node)
    if function in home.resolved and function in home.users:
        return home.access(function, node) if _made(home, function, node, creations) else None
    owner = function.method
    if owner.cls is not None and home.reads_own(owner) and home.is_attribute(owner):
        early = _made_early(home, owner.cls) or _off_at_first(owner.cls, creations)
        early = early or _is_off_otherwise(home, owner.cls)
        return home.access(function, node) if early else None
    if _is_made_off(home, function, node, creations):
        return home.access(function, node)
    calls = home.project.callers(function)
    ready = all(call.function in home.inits or call.function in home.users for call in calls)
    if not calls or not ready or home.project.escapes(function):
        return None
    if not all(
        _dominated(home, call) and _made(home, call.function, call.call, creations)
        for call in calls
    ):
        return None
    home.constructs = False
    try:
        return home.access(function, node)
    except Cannot:
        return None
    finally:
        home.constructs = True


def _is_made_off(home: Home, function: Function, node: ast.AST, creations: list[Creation]) -> bool:
    """Tell whether a function reads the scaler off an object on which it was made before in every run: ``runner.scaler``."""
    relatives = {relative for cls in home.keepers for relative in family(cls)}
    name = in_reach.held(home.project, relatives, function, node)
    if name is None or not name.isidentifier():
        return name is not None and _is_kept_beside(home, function, name, node, creations)
    kept = _is_there(home, function, name, node) and _keeps_always(home, function, name, creations)
    return kept or _is_made_on(home, function, name, node, creations, frozenset())


def _keeps_always(home: Home, function: Function, name: str, creations: list[Creation]) -> bool:
    """Tell whether networks that a variable holds have the scaler from their constructor on, if one that is off.

    Methods of other objects ask for it themselves.
    """
    read = (n for n in function.own_nodes if isinstance(n, ast.Name) and n.id == name)
    found = home.project.instance_classes
    classes = {cls for variable in read for cls in found(function.module, variable)}
    keepers = {relative for cls in home.keepers for relative in family(cls)}
    early = (_made_early(home, cls) or _off_at_first(cls, creations) for cls in classes)
    networks = bool(classes) and all(map(is_network_class, classes))
    return networks and classes <= keepers and all(early)


def _is_kept_beside(
    home: Home, function: Function, name: str, node: ast.AST, creations: list[Creation]
) -> bool:
    """Tell whether an attribute of a method's object is an object that has the scaler from its constructor on: ``self.trainer``."""
    owner, _, attribute = name.rpartition(".")
    if function.cls is None or owner != function.receiver:
        return False
    places = [
        (method.module, part)
        for cls in function.cls.mro()
        for method in cls.methods.values()
        for part in method.all_nodes
        if isinstance(part, ast.Attribute) and part.attr == attribute
        if is_attribute_of(method.receivers, part)
    ]
    classes = {cls for where, part in places for cls in in_reach.objects(home.project, where, part)}
    begins = [m for cls in classes if (m := cls.method("__init__")) is not None]
    if not classes or any(function in reachable(home.project, begin) for begin in begins):
        return False
    early = (_made_early(home, cls) or _off_at_first(cls, creations) for cls in classes)
    asks = any(_is_method_of(home, name, part) for part in ast.walk(node))
    return all(early) and not asks and all(_is_object(home, *each) for each in places)


def _is_object(home: Home, module: Module, node: ast.Attribute) -> bool:
    """Tell whether what an attribute is set to is made by a class wherever it comes from, and never None."""
    value = node if isinstance(node.ctx, ast.Load) else assigned(module.tree, node)
    found = list(held(home.project, module, value)) if value is not None else []
    constructed = home.project.constructed
    return bool(found) and all(isinstance(v, ast.Call) and constructed(v) for v in found)


def _is_there(home: Home, function: Function, name: str, node: ast.AST) -> bool:
    """Tell whether a variable is not None at a node, which asks for something that its object has."""
    try:
        refuse_missing(home.project, function, node, f"{name}.")
    except Cannot:
        return False
    queue = [node]
    for part in queue:
        if isinstance(part, ast.Attribute) and path(part.value) == name:
            return True
        if not isinstance(part, _AT_TIMES):
            queue += ast.iter_child_nodes(part)
    return False


def _is_made_on(
    home: Home,
    function: Function,
    name: str,
    node: ast.AST,
    creations: list[Creation],
    around: frozenset[Function],
) -> bool:
    """Tell whether the object that a variable holds has initialized, as it was made or since, whenever a function comes to a node."""
    tree, scopes = function.module.tree, function.module.scopes
    bindings = scopes.bindings(function.scope, name)
    if function in around:
        return True  # it hands on what it was given
    if len(bindings) != 1:
        return False
    if name == function.receiver:
        return _is_made_whole(home, function, creations)
    for call in function.calls:
        callees = home.project.callees(call)
        own = isinstance(call.func, ast.Attribute) and path(call.func.value) == name
        if own and callees and all(callee in home.inits for callee in callees):
            if dominates(tree, tree.statement(call), node):
                return True
    made = bound_value(function.module, bindings[0])
    if isinstance(made, ast.Call) and (kept := home.project.constructed(made)):
        begun = all(_initializes_at_once(home, cls) for cls in kept)
        asks = any(_is_method_of(home, name, part) for part in ast.walk(node))
        return begun and not asks and dominates(tree, tree.statement(made), node)
    sites = home.project.callers(function)
    if not isinstance(bindings[0], ast.arg) or not sites or home.project.escapes(function):
        return False
    for site in sites:
        given = home.project.arguments(site, function).get(name)
        if not isinstance(given, ast.Name) or home.project.holder(given) is not site.function:
            return False
        if not _is_made_on(
            home, site.function, given.id, site.call, creations, around | {function}
        ):
            return False
    return True


def _is_made_whole(home: Home, method: Function, creations: list[Creation]) -> bool:
    """Tell whether the object of a method has the scaler from its constructor on, which does not run the method."""
    cls = method.cls
    if cls is None or not (_made_early(home, cls) or _off_at_first(cls, creations)):
        return False
    begins = [m for c in family(cls) if (m := c.methods.get("__init__")) is not None]
    return all(method is not m and method not in reachable(home.project, m) for m in begins)


def _is_method_of(home: Home, name: str, node: ast.AST) -> bool:
    """Tell whether a node runs a method of the object that a variable holds, which can ask for the scaler itself."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return path(node.func.value) == name and bool(home.project.callees(node))


def _initializes_at_once(home: Home, cls: Class) -> bool:
    """Tell whether the constructor of a class comes to an initialize of its object."""
    constructor = cls.method("__init__")
    if constructor is None:
        return False
    run = {constructor, *reachable(home.project, constructor)}
    return any(made in run and made.cls in cls.mro() for made in home.inits)


def without_cost(
    home: Home, function: Function, node: ast.AST, creations: list[Creation]
) -> str | None:
    """Return how an evaluation reaches the scaler that its object keeps from the start, or that the function around it made before it."""
    owner = function.method
    if owner.cls is not None and home.reads_own(owner) and home.is_attribute(owner):
        return at_hand(home, function, node, creations)
    if not _is_made_above(home, function, creations):
        return None
    try:
        return home.access(function, node)
    except Cannot:
        return None


def _is_made_above(home: Home, function: Function, creations: list[Creation]) -> bool:
    """Tell whether the function around one was given the scaler, or has made it where it defines that one."""
    around = function.parent
    if around is None or function.node is None:
        return False
    made = [c for c in creations if c.site in home.inits.get(around, [])]
    tree = around.module.tree
    above = bool(made) and all(dominates(tree, c.top, function.node) for c in made)
    return above or around in home.threads


def _of_file(home: Home, function: Function, node: ast.AST) -> str | None:
    """Return the GradScaler that is a variable of its file, which is there from the start, and off until it is made."""
    if not any(function.module is made.module for made in home.inits):
        return None
    try:
        return home.access(function, node)
    except Cannot:
        return None


def _made(home: Home, function: Function, node: ast.AST, creations: list[Creation]) -> bool:
    """Tell whether a function that makes the scaler in a variable has made it whenever it comes to a node."""
    if function not in home.inits or home.is_attribute(function):
        return True
    own = [c for c in creations if c.site in home.inits[function]]
    if any(c.shared for c in own):
        tops = children_of(function.module.tree, [c.site.statement for c in own])[:1]
    else:
        tops = [c.top for c in own]
    return not own or any(reaches(function.module.tree, top, node) for top in tops)


def _dominated(home: Home, call: CallSite) -> bool:
    """Tell whether a call comes after the initialize of its function, without leaving more guards."""
    sites = home.inits.get(call.function)
    if not sites:
        return True
    tree = call.function.module.tree
    pairs = (common(tree, site.node, call.call) for site in sites)
    pair = next((pair for pair in pairs if pair is not None), None)
    return pair is not None and dominates(tree, pair[0], call.call)


def _made_early(home: Home, cls: Class) -> bool:
    """Tell whether the constructor makes or receives the scaler."""
    relatives = family(cls)
    made = any(f.name == "__init__" and f.cls in relatives for f in home.inits)
    constructed = any(c in relatives for c in home.constructed)
    emptied = any(empty.owner in relatives for empty in home.carriers.empty)
    return made or constructed or emptied or home.returning.kept_at_once(cls)


def _off_at_first(cls: Class, creations: list[Creation]) -> bool:
    """Tell whether the constructor makes a scaler that is off, as the method that initializes need not run."""
    relatives = family(cls)
    return any(c.sometimes and c.site.function.cls in relatives for c in creations)


def _is_off_otherwise(home: Home, cls: Class) -> bool:
    """Tell whether a class has an attribute that is off, for objects which make no scaler of their own."""
    try:
        return any(base in cls.mro() for base in lacking(home))
    except Cannot:
        return False
