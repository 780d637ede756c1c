"""Which functions a function calls, and which call it, directly or not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable

from amp_migrate.project import Function, Project
from amp_migrate.project.once import once


def upwards(project: Project, function: Function) -> set[Function]:
    """Return a function and those that call it, directly or not."""
    seen: set[Function] = set()
    stack = [function]
    while stack:
        here = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        stack += [site.function for site in project.callers(here)]
    return seen


def reachable(project: Project, start: Function, barred: Container[Function] = ()) -> set[Function]:
    """Return a function and those that it calls, directly or not, with the ones nested in them.

    What is `barred`, and what is called through it alone, is left out.
    """
    called = _called(project)
    seen: set[Function] = set()
    stack = [start]
    while stack:
        here = stack.pop()
        if here in seen or here in barred:
            continue
        seen.add(here)
        stack += called.get(here, ())
    return seen


@once
def _called(project: Project) -> dict[Function, set[Function]]:
    """Return for every function those that it calls or that are nested in it."""
    table: dict[Function, set[Function]] = defaultdict(set)
    for function, calls in project.calls.sites.items():
        for site in calls:
            table[site.function].add(function)
    for function in project.functions():
        if function.parent is not None:
            table[function.parent].add(function)
    return table


def scattered(
    project: Project, inits: Iterable[Function]
) -> tuple[Function, Function | None] | None:
    """Return a function that may not make the scaler: a class method, or one that calls another which initializes."""
    functions = list(inits)
    for function in functions:
        if function.is_class:
            return function, None
        called = reachable(project, function)
        for other in functions:
            if other is not function and other in called:
                return function, other
    return None
