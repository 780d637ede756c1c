"""Methods of objects that a name holds, and that are called by it: ``clear = optimizer.zero_grad; clear()``."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.paths import tail
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Project
from amp_migrate.training.bindings import unpacked


class NamedMethods:
    """Finds which method of an object is called by a name; `wanted` are the names of the methods asked for."""

    def __init__(self, project: Project, wanted: frozenset[str]) -> None:
        self._project = project
        self._wanted = wanted

    def run(self, call: ast.Call) -> ast.Attribute | None:
        """Return the method that a call by a name runs, where it can be no other one: also a `functools.partial` of it."""
        if not self._is_read or not isinstance(call.func, ast.Name):
            return None
        value = self._given(call.func)
        if isinstance(value, ast.Call) and tail(value) == "partial" and value.args:
            value = value.args[0]
        return value if isinstance(value, ast.Attribute) and value.attr in self._wanted else None

    def _given(self, name: ast.Name) -> ast.expr | None:
        """Return what a name is given, where that happens once."""
        module = self._project.module_of(name)
        bound = module.scopes.bound(name)
        if len(bound) != 1:
            return None
        value = assigned(module.tree, bound[0])
        found = list(unpacked(self._project, module, bound[0])) if value is None else [value]
        return found[0] if len(found) == 1 else None

    @cached_property
    def _is_read(self) -> bool:
        """Whether any file reads one of the methods otherwise than to call it."""
        return any(
            isinstance(node.ctx, ast.Load) and module.tree.call_of(node) is None
            for module in self._project.modules.values()
            for name in self._wanted
            for node in module.tree.attributes(name)
        )
