"""What containers were given: by their methods, and as items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.project import Module, Project
from amp_migrate.training.beliefs import COLLECTS
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects


class Given(NamedTuple):
    """What a container is given, and how that is spelt there."""

    module: Module
    value: ast.expr
    container: ast.expr


class Collected:
    """Knows what was put into the containers of a project, whenever that happens."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects

    def within(self, module: Module, node: ast.expr) -> Iterator[Given]:
        """Yield what the container that an expression holds was given."""
        groups = self._objects.groups(module, node)
        for group in groups:
            yield from self._held.get(group, ())

    @cached_property
    def _held(self) -> dict[int, list[Given]]:
        """What each container of the project was given, by its name."""
        found: dict[int, list[Given]] = {}
        for groups, given in (*self._by_methods(), *self._as_items()):
            for group in groups:
                found.setdefault(group, []).append(given)
        return found

    def _by_methods(self) -> Iterator[tuple[Groups, Given]]:
        for method in COLLECTS:
            for module, call in self._objects.method_calls.get(method, ()):
                assert isinstance(call.func, ast.Attribute)
                groups = self._objects.groups(module, call.func.value)
                for given in (*call.args, *(k.value for k in call.keywords)):
                    yield groups, Given(module, given, call.func.value)

    def _as_items(self) -> Iterator[tuple[Groups, Given]]:
        for module in self._project.modules.values():
            for node in module.tree.nodes(ast.Subscript):
                value = getattr(module.tree.statement(node), "value", None)
                if isinstance(node.ctx, ast.Store) and isinstance(value, ast.expr):
                    given = Given(module, value, node.value)
                    yield self._objects.groups(module, node.value), given
