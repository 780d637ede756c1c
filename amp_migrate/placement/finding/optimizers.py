"""Which expressions are the optimizers of a unit."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from amp_migrate.apex.apart import optimizer_expressions
from amp_migrate.facts.paths import path
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module


class Optimizers:
    """Knows the optimizers of a unit."""

    def __init__(self, unit: Unit) -> None:
        self._values = unit.project.values
        self._runners = unit.home.runners
        self._groups: set[Hashable] = set()
        self._texts: dict[Function, set[str]] = {}
        for site in unit.sites:
            for node in optimizer_expressions(site):
                self._groups |= self._values.groups(site.module, node)
                text = path(node)
                if text:
                    self._texts.setdefault(site.function, set()).add(text)
        self._carried = self._runners.given(self._values, self._groups)

    def has(self, module: Module, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is an optimizer of the unit."""
        while isinstance(node, ast.Subscript) and self._values.group(module, node) is None:
            node = node.value
        if self._values.lineage(module, node) & self._groups:
            return True
        if self._carried and path(node) == f"{self._runners.through(function)}.optimizer":
            return True
        return (path(node) or "") in self._texts.get(function, set())
