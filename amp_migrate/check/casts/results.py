"""What the callers of a function call a network that it returns to each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.objects import Objects

_Part = int | None
"""Which item of a tuple is returned; None for all of what is."""


def handed_back(
    project: Project, objects: Objects, networks: frozenset[int], functions: Iterable[Function]
) -> frozenset[int]:
    """Return the names of the networks that functions return, and those that return what they got from these."""
    found: set[int] = set(networks)
    queue = list(dict.fromkeys(functions))
    seen = set(queue)
    for function in queue:
        for part in set(_parts(objects, found, function)):
            for site in project.callers(function):
                more: set[int] = set()
                for target in _targets(site, part):
                    more |= objects.groups(site.function.module, target)
                if not more <= found:
                    found |= more
                    if site.function not in seen:
                        seen.add(site.function)
                        queue.append(site.function)
    return frozenset(found)


def _parts(objects: Objects, networks: set[int], function: Function) -> Iterator[_Part]:
    for value in returned(function):
        if objects.groups(function.module, value) & networks:
            yield None
        elif isinstance(value, ast.Tuple):
            for index, item in enumerate(value.elts):
                if objects.groups(function.module, item) & networks:
                    yield index


def _targets(site: CallSite, part: _Part) -> Iterator[ast.expr]:
    """Yield what a call and the variables that take a part of its result are."""
    if part is None:
        yield site.call
    up = site.function.module.tree.parent(site.call)
    for target in targets_of(up):
        if part is None:
            yield target
        elif isinstance(target, ast.Tuple | ast.List) and part < len(target.elts):
            yield target.elts[part]
