"""Which functions a function calls, and which call it, directly or not."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TypeVar

from amp_migrate.facts.closure import closure, spread
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.project.once import kept, once

N = TypeVar("N", bound=ast.AST)


def upwards(project: Project, *functions: Function) -> set[Function]:
    """Return some functions and those that call them, directly or not."""
    return set(closure(functions, lambda here: (s.function for s in project.callers(here))))


def leading_to(
    project: Project, *nodes: tuple[Function, N]
) -> Iterator[tuple[Function, N | ast.Call]]:
    """Yield nodes of functions and the calls that lead there, directly or not, each with its function."""
    starts: tuple[tuple[Function, N | ast.Call], ...] = nodes
    return spread(starts, lambda at: ((s.function, s.call) for s in project.callers(at[0])))


def coming_to(project: Project, path: str, line: int) -> list[str]:
    """Return the files whose functions come to a line of a file by calls, nearest first."""
    around = [f for f in project.modules[path].functions.values() if f.spans(line)]
    home = max(around, key=lambda function: function.node.lineno if function.node else 0)
    above = closure([home], lambda here: (site.function for site in project.callers(here)))
    return list(dict.fromkeys(function.module.path for function in above))


def run_around(project: Project, *functions: Function) -> set[Function]:
    """Return what the programs run that some functions run in, as far as calls show them."""
    return {f for start in upwards(project, *functions) for f in reachable(project, start)}


def reachable(
    project: Project, start: Function, barred: Collection[Function] = ()
) -> AbstractSet[Function]:
    """Return a function and those that it calls, directly or not, with the ones nested in them.

    What is `barred`, and what is called through it alone, is left out.
    """
    called = _called(project)
    if barred:
        starts = [] if start in barred else [start]
        return set(
            closure(starts, lambda here: (f for f in called.get(here, ()) if f not in barred))
        )
    return kept(
        project,
        (reachable, start),
        lambda: frozenset(closure([start], lambda here: called.get(here, ()))),
    )


def made_with_object(project: Project, function: Function) -> bool:
    """Tell whether making an object of its class comes to the method that initializes."""
    made = function.cls.method("__init__") if function.cls is not None else None
    begins = made is not None and function in {made, *reachable(project, made)}
    return begins or function.name == "__post_init__"


def of_new_objects(project: Project, function: Function) -> bool:
    """Tell whether a function only runs for objects that are being made: a constructor, or what those alone call on their own."""

    def calling(here: Function) -> list[Function]:
        return [] if here.name == "__init__" else [s.function for s in project.callers(here)]

    found = closure([function], calling)
    return all(_makes(project, here) for here in found)


def _makes(project: Project, function: Function) -> bool:
    sites = project.callers(function)
    if function.cls is None:
        return False
    if function.name != "__init__":
        seen = bool(sites) and not any(project.escapes(function))
        return seen and all(map(on_own, sites))
    return all(s.constructor or (s.function.name == "__init__" and _of_base(s)) for s in sites)


def on_own(site: CallSite) -> bool:
    """Tell whether a call is of a method on the object of the function that calls it."""
    func = site.call.func
    return isinstance(func, ast.Attribute) and site.function.is_receiver(func.value)


def _of_base(site: CallSite) -> bool:
    """Tell whether a call is that of a constructor of a base class: ``super().__init__()``, ``Base.__init__(self)``."""
    func = site.call.func
    above = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call)
    return above or bool(site.call.args and site.function.is_receiver(site.call.args[0]))


def is_of_another(project: Project, maker: Function, function: Function, asked: ast.expr) -> bool:
    """Tell whether what a function asks of its own object cannot be what another one is about to store: that is for new objects."""
    own = isinstance(asked, ast.Attribute) and function.is_receiver(asked.value)
    return own and of_new_objects(project, maker) and not of_new_objects(project, function)


def reached_by(project: Project, node: ast.AST) -> AbstractSet[Function]:
    """Return the functions that a call runs, directly or not; none for what is no call."""
    callees = tuple(project.callees(node)) if isinstance(node, ast.Call) else ()
    if len(callees) == 1:
        return reachable(project, callees[0])
    return kept(
        project,
        (reached_by, callees),
        lambda: frozenset().union(*(reachable(project, callee) for callee in callees)),
    )


def calls_to(project: Project, function: Function, wanted: AbstractSet[Function]) -> list[ast.Call]:
    """Return the calls of a function that run one of some functions, directly or not."""
    return [call for call in function.calls if runs_one(project, call, wanted)]


def runs_one(project: Project, call: ast.Call, functions: AbstractSet[Function]) -> bool:
    """Tell whether a call runs one of some functions, directly or not."""
    return not all(
        functions.isdisjoint(reachable(project, callee)) for callee in project.callees(call)
    )


@once
def _called(project: Project) -> dict[Function, set[Function]]:
    """Return for every function those that it calls or that are nested in it."""
    table: dict[Function, set[Function]] = defaultdict(set)
    for function, calls in project.calls.sites.items():
        for site in calls:
            table[site.function].add(function)
    for function, completed in project.calls.completions.items():
        for site, _ in completed:
            table[site.function].add(function)
    for function in project.functions():
        if function.parent is not None:
            table[function.parent].add(function)
    return table


def attributes_set(project: Project, function: Function) -> frozenset[str]:
    """Return the attributes that a function sets, itself or in what it calls."""
    return frozenset().union(
        *(
            kept(project, (_set_by, body), partial(_set_by, body))
            for body in reachable(project, function)
        )
    )


def _set_by(function: Function) -> frozenset[str]:
    """Return the attributes that a function sets itself."""
    return frozenset(
        node.attr
        for node in function.own_nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    )


def where_named(project: Project, *names: str) -> Iterator[tuple[Module, ast.Attribute]]:
    """Yield where attributes of some names are read, set or deleted, of whatever objects."""
    return ((m, node) for m in project.modules.values() for node in m.tree.attributes(*names))


def where_set(project: Project, name: str) -> list[tuple[Module, ast.Attribute]]:
    """Return where an attribute of some name is set or deleted, of whatever object."""
    return [
        (m, node) for m, node in where_named(project, name) if not isinstance(node.ctx, ast.Load)
    ]


def where_read(project: Project, name: str) -> list[tuple[Module, ast.Attribute]]:
    """Return where an attribute of some name is read, of whatever object."""
    return [(m, node) for m, node in where_named(project, name) if isinstance(node.ctx, ast.Load)]


@once
def set_later(project: Project) -> frozenset[str]:
    """Return the attributes that something other than a constructor sets or deletes."""
    return frozenset(
        node.attr
        for module, node in project.nodes(ast.Attribute)
        if not isinstance(node.ctx, ast.Load)
        and project.function_of(module, node).name != "__init__"
    )


def scattered(
    project: Project,
    inits: Iterable[Function],
    keeps: Callable[[Function], bool] = lambda function: True,
) -> tuple[Function, Function | None] | None:
    """Return a function that may not make the scaler: a class method that `keeps` it, or one that calls another which initializes."""
    functions = list(inits)
    for function in functions:
        if function.is_class and keeps(function):
            return function, None
        called = reachable(project, function)
        for other in functions:
            if other is not function and other in called:
                return function, other
    return None
