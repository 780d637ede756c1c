"""What containers were given: by their methods, and as items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import COLLECTS
from amp_migrate.training.bindings import is_generator, returned
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.reaching import Body, Reaching, own_part
from amp_migrate.training.origins.walk import Origin

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
    def in_tensors(self) -> frozenset[int]:
        """What tensors or arrays are given for a part of them, which keep their type: ``decoded[:length, 0] = hypothesis``."""
        return frozenset(n for n, given in enumerate(self.given) if _spans(given))

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
            if not isinstance(node.ctx, ast.Store) or own_part(self._body(module, node), node):
                continue  # what a read of a part may hold, the control flow tells
            if isinstance(value, ast.expr):
                given = Given(module, value, node.value)
                yield self._objects.groups(module, node.value), given


def _spans(given: Given) -> bool:
    """Tell whether something is given to a part of a tensor, by indices that no list and no dict takes."""
    up = given.module.tree.parent(given.container)
    index = up.slice if isinstance(up, ast.Subscript) else None
    return isinstance(index, ast.Tuple) and any(isinstance(i, ast.Slice) for i in index.elts)


def item(
    project: Project, reached: Reaching, function: Function, node: ast.Subscript
) -> list[Origin]:
    """Return what an item of a dict was made of, where nothing but the items of that dict are ever read: ``made["model"]``.

    Nothing, where anything else may have changed it.
    """
    held, key = node.value, node.slice
    if not isinstance(held, ast.Name) or not isinstance(key, ast.Constant):
        return []
    if function.node is None or not _is_only_asked(function, held):
        return []
    found: list[Origin] = []
    for value in reached.of(function, held):
        made = _displays(project, function, value)
        items = [(each, _under(each.node, key.value)) for each in made]
        if not items or any(given is None for _, given in items):
            return []
        found += [each._replace(node=given) for each, given in items if given is not None]
    return found


def _is_only_asked(function: Function, name: ast.Name) -> bool:
    """Tell whether a variable of a function is only bound, and asked for items by constants."""
    tree = function.module.tree
    if function.module.scopes.owner(name) is not function.scope:
        return False
    for node in function.all_nodes:
        if isinstance(node, ast.Nonlocal) and name.id in node.names:
            return False
        if not isinstance(node, ast.Name) or node.id != name.id:
            continue
        up = tree.parent(node)
        if isinstance(node.ctx, ast.Store):
            if not (isinstance(up, ast.Assign) and len(up.targets) == 1):
                return False
        elif not (
            isinstance(up, ast.Subscript) and up.value is node and isinstance(up.ctx, ast.Load)
        ):
            return False
    return True


def _displays(
    project: Project, function: Function, value: ast.expr | ast.arg | None
) -> list[Origin]:
    """Return the displays that a value is one of, made anew each time: its own, or those of the functions called."""
    if isinstance(value, ast.Dict):
        return [Origin(function, value)]
    if not isinstance(value, ast.Call):
        return []
    found: list[Origin] = []
    for callee in project.callees(value):
        node, given = callee.node, returned(callee)
        plain = isinstance(node, ast.FunctionDef) and not node.decorator_list
        if not plain or is_generator(callee) or not given:
            return []
        if not all(isinstance(each, ast.Dict) for each in given):
            return []
        found += [Origin(callee, each, down=value) for each in given]
    return found


def _under(display: ast.AST, key: object) -> ast.expr | None:
    """Return what a display of a dict holds under a key, where all its keys are constants."""
    assert isinstance(display, ast.Dict)
    known: dict[object, ast.expr] = {
        k.value: v
        for k, v in zip(display.keys, display.values, strict=True)
        if isinstance(k, ast.Constant)
    }
    return known.get(key) if len(known) == len(display.keys) else None
