"""Small questions about the calls, constructors and assignments that the scaler is threaded through."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.facts.paths import calls_method, defs, mentions
from amp_migrate.plan.model import Insert
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.project.order import levels


def fills_all(site: CallSite, function: Function) -> bool:
    """Tell whether a call gives every positional parameter by position, so that one more can follow."""
    if any(isinstance(a, ast.Starred) for a in site.call.args) or site.call.keywords:
        return False
    given = len(site.arguments()) + bool(site.bound)
    return given == len(function.parameters.positional) and not function.parameters.keyword_only


def last_assignment(init: Function) -> ast.stmt:
    """Return the last plain assignment of a parameter to `self` at the start of a constructor."""
    if init.node is None:
        raise ValueError("module")
    names = set(init.parameters.names)
    chosen = None
    for stmt in init.node.body:
        if (
            isinstance(stmt, ast.Assign)
            and isinstance(stmt.value, ast.Name)
            and stmt.value.id in names
        ):
            chosen = stmt
        elif chosen is not None:
            break
    if chosen is not None:
        return chosen
    supers = [s for s in init.node.body if mentions(s, "super") and calls_method(s, "__init__")]
    return supers[0] if supers else init.node.body[0]


def is_docstring_only(init: Function) -> bool:
    """Tell whether a constructor holds nothing but its docstring."""
    return init.node is not None and len(init.node.body) == 1 and not defs(init.node.body[0])


def kept(init: Function, name: str) -> Insert:
    """Return the edit by which a constructor keeps a parameter as an attribute."""
    anchor = last_assignment(init)
    if is_docstring_only(init):
        anchor = init.scope.body[-1]
    text = f"{init.parameters.names[0]}.{name} = {name}"
    return Insert(init.module.tree.span(anchor), text, after=True)


def is_conditional(call: CallSite) -> bool:
    """Tell whether a call stands under a test or in a loop of its function."""
    tree = call.function.module.tree
    own = list(levels(tree, call.call))
    return any(isinstance(level, ast.If | ast.Try | ast.For | ast.While) for level in own)


def kept_on_self(site: Site, first: str) -> bool:
    """Tell whether an initialize assigns the optimizer, or all it returns, to attributes of the object `first`.

    One whose result is dropped changes the attributes that it is given.
    """
    stmt = site.statement
    targets: list[ast.expr] = []
    if isinstance(stmt, ast.Assign):
        targets = stmt.targets
    elif isinstance(stmt, ast.Expr):
        named = [k.value for k in site.call.keywords if k.arg == "optimizers"]
        targets = [*site.call.args[1:2], *named]
    parts = [p for t in targets for p in (t.elts[-1:] if isinstance(t, ast.Tuple) else [t])]
    return any(
        isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == first
        for part in parts
        for n in ast.walk(part)
    )


def sometimes_called(project: Project, function: Function) -> bool:
    """Tell whether a method that initializes is called on some paths only, or not by the constructor."""
    if function.name in ("__init__", "__post_init__"):
        return False
    calls = project.callers(function)
    return not calls or any(is_conditional(call) for call in calls)


def always_constructed(project: Project, function: Function) -> bool:
    """Tell whether the constructor of every object of its class runs a method, or is the method."""
    cls = function.cls
    init = cls.method("__init__") if cls is not None else None
    if (
        cls is None
        or init is None
        or any(c.method("__init__") is not init for c in cls.subclasses())
    ):
        return False
    calls = project.callers(function)
    return function is init or any(c.function is init and not is_conditional(c) for c in calls)
