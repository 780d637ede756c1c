"""What containers were given: by their methods, and as items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import COLLECTS
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.reaching import Body

_NOTHING: frozenset[int] = frozenset()


class Given(NamedTuple):
    """What a container is given, and how that is spelt there."""

    module: Module
    value: ast.expr
    container: ast.expr


class Collected:
    """Knows what was put into the containers of a project, whenever that happens, each by its number in `given`."""

    def __init__(self, project: Project, objects: Objects, body: Body) -> None:
        self._project = project
        self._objects = objects
        self._body = body
        self._within: dict[Groups, frozenset[int]] = {}

    def within(self, module: Module, node: ast.expr) -> frozenset[int]:
        """Return what the container that an expression holds was given."""
        groups = self._objects.groups(module, node)
        known = self._within.get(groups)
        if known is None:
            held = (self._held[group] for group in groups & self._held.keys())
            known = self._within[groups] = frozenset().union(*held)
        return known

    def named(self, function: Function, name: str) -> frozenset[int]:
        """Return what is given to a variable in the body of a function."""
        return self._named.get((function, name), _NOTHING)

    @cached_property
    def given(self) -> list[Given]:
        """What the containers of the project are given."""
        return [given for _, given in self._every]

    @cached_property
    def _every(self) -> list[tuple[Groups, Given]]:
        return [*self._by_methods(), *self._as_items()]

    @cached_property
    def _held(self) -> dict[int, list[int]]:
        """What each container of the project was given, by its name."""
        found: dict[int, list[int]] = {}
        for number, (groups, _) in enumerate(self._every):
            for group in groups:
                found.setdefault(group, []).append(number)
        return found

    @cached_property
    def _named(self) -> dict[tuple[Function, str], frozenset[int]]:
        found: dict[tuple[Function, str], set[int]] = {}
        for number, given in enumerate(self.given):
            if isinstance(given.container, ast.Name):
                key = self._body(given.module, given.container), given.container.id
                found.setdefault(key, set()).add(number)
        return {key: frozenset(numbers) for key, numbers in found.items()}

    def _by_methods(self) -> Iterator[tuple[Groups, Given]]:
        for method in COLLECTS:
            for module, call in self._objects.method_calls.get(method, ()):
                assert isinstance(call.func, ast.Attribute)
                groups = self._objects.groups(module, call.func.value)
                for given in all_given(call):
                    yield groups, Given(module, given, call.func.value)

    def _as_items(self) -> Iterator[tuple[Groups, Given]]:
        for module, node in self._project.nodes(ast.Subscript):
            value = getattr(module.tree.statement(node), "value", None)
            if isinstance(node.ctx, ast.Store) and isinstance(value, ast.expr):
                given = Given(module, value, node.value)
                yield self._objects.groups(module, node.value), given
