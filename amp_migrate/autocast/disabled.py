"""What runs in the blocks of `amp.disable_casts()`: a native block inside them would switch casts on again."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.sites import Kind, Site, sites
from amp_migrate.autocast.slicing.region import Region
from amp_migrate.facts.paths import walk
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reached_by
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.unit import Unit

_NAME = "disable_casts"


class Disabled:
    """The calls in blocks without casts, and the functions that those run."""

    def __init__(self, unit: Unit) -> None:
        self.calls: set[ast.Call] = set()
        self._sites: dict[Function, Site] = {}
        for site in _sites(unit):
            for block in _blocks(site):
                for node in (n for stmt in block.body for n in walk(stmt)):
                    if isinstance(node, ast.Call):
                        self.calls.add(node)
                        for function in reached_by(unit.project, node):
                            self._sites.setdefault(function, site)
        self._only = self._only_there(unit.project)

    def holds(self, function: Function) -> bool:
        """Tell whether a function runs in such blocks alone, so that it needs no casts."""
        return function in self._only

    def _only_there(self, project: Project) -> set[Function]:
        found = {f for f in self._sites if project.callers(f) and not project.escapes(f)}
        while True:
            kept = {
                function
                for function in found
                if all(
                    site.call in self.calls or site.function in found
                    for site in project.callers(function)
                )
            }
            if kept == found:
                return found
            found = kept

    def runs(self, function: Function) -> bool:
        """Tell whether a function may run in such a block."""
        return function in self._sites

    def refuse(self, cast: Iterable[Region]) -> None:
        """Leave the unit where a function that runs in such a block is to have casts of its own."""
        for region in cast:
            site = self._sites.get(region.function)
            if site is not None:
                name = region.function.name
                raise Cannot(
                    "AMP904",
                    site.module,
                    site.node,
                    f"{name}() runs without casts here and with them elsewhere, and an autocast block in it would "
                    "switch them on here too",
                    f"call a function of its own here, with the body of {name}(), then run again",
                )


def _sites(unit: Unit) -> Iterator[Site]:
    for module in unit.near:
        if any(node.attr == _NAME for node in module.tree.nodes(ast.Attribute)) or any(
            alias.name == _NAME
            for node in module.tree.nodes(ast.ImportFrom)
            for alias in node.names
        ):
            yield from (s for s in sites(unit.project, module) if s.kind is Kind.DISABLE_CASTS)


def _blocks(site: Site) -> Iterator[ast.With]:
    """Yield the blocks that a `disable_casts()` is around, itself or by the name that holds it."""
    tree = site.module.tree
    statement = tree.statement(site.node)
    if isinstance(statement, ast.With):
        yield statement
    named = statement.targets if isinstance(statement, ast.Assign) else []
    names = {target.id for target in named if isinstance(target, ast.Name)}
    for node in walk(site.function.scope) if names else ():
        if isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.context_expr, ast.Name) and item.context_expr.id in names:
                    yield node
