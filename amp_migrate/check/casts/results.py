"""What the callers of a function call a network that it returns to each of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import CallSite, Function, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.objects import Objects


def handed_back(
    project: Project, objects: Objects, networks: frozenset[int], functions: Iterable[Function]
) -> frozenset[int]:
    """Return the names of the networks that functions return, and those that return what they got from these.

    What else comes with a network, as in a tuple, is none.
    """
    found: set[int] = set(networks)
    queue = list(dict.fromkeys(functions))
    seen = set(queue)
    for function in queue:
        values = returned(function)
        if not any(objects.groups(function.module, value) & found for value in values):
            continue
        for site in project.callers(function):
            held = {
                group
                for target in _targets(site)
                for group in objects.groups(site.function.module, target)
            }
            more = {group for group in held if objects.origins({group}) & found}
            if not more <= found:
                found |= more
                if site.function not in seen:
                    seen.add(site.function)
                    queue.append(site.function)
    return frozenset(found)


def _targets(site: CallSite) -> Iterator[ast.expr]:
    """Yield what a call and the variables that take its result, or a part of it, are."""
    yield site.call
    queue = targets_of(site.function.module.tree.parent(site.call))
    for target in queue:
        yield target
        queue += target.elts if isinstance(target, ast.Tuple | ast.List) else []
