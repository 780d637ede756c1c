"""What containers were given: by their methods, and as items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from amp_migrate.facts.paths import all_given
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import COLLECTS, SHAPES
from amp_migrate.training.bindings import is_generator, returned
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.reaching import Body, Reaching, own_part
from amp_migrate.training.origins.walk import Origin

_NOTHING: frozenset[int] = frozenset()
_DISPLAYS = (ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)
_OF_TENSORS = SHAPES | {"double", "float", "half", "item", "sigmoid", "softmax"}


class Given(NamedTuple):
    """What a container is given, and how that is spelt there."""

    module: Module
    value: ast.expr
    container: ast.expr


class Collected:
    """Knows what was put into the containers of a project, whenever that happens, each by its number in `given`."""

    def __init__(self, project: Project, objects: Objects, body: Body, reached: Reaching) -> None:
        self._project = project
        self._objects = objects
        self._body = body
        self._reached = reached
        self._within: dict[Groups, frozenset[int]] = {}
        self._made: dict[ast.expr, frozenset[ast.AST] | None] = {}

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

    def may_be_one(self, function: Function, node: ast.expr, number: int) -> bool:
        """Tell whether a container that is read may be one that is given something, as not where each is made elsewhere."""
        one = self._made_of(function, node)
        if one is None:
            return True
        given = self.given[number]
        other = self._made_of(self._body(given.module, given.container), given.container)
        return other is None or not _are_displays(other) or not one.isdisjoint(other)

    def _made_of(self, function: Function, node: ast.AST) -> frozenset[ast.AST] | None:
        """Return what makes anew all that an expression may give, a tensor included; None where it may be anything else."""
        if isinstance(node, (*_DISPLAYS, ast.BinOp, ast.Constant)):
            return frozenset({node})
        if not isinstance(node, ast.Name | ast.Attribute | ast.Call):
            return None
        if node not in self._made:
            self._made[node] = None  # where one comes back to itself
            self._made[node] = self._made_by(function, node)
        return self._made[node]

    def _made_by(
        self, function: Function, node: ast.Name | ast.Attribute | ast.Call
    ) -> frozenset[ast.AST] | None:
        if isinstance(node, ast.Call):
            callees = self._project.callees(node)
            if not callees:
                of_tensors = isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TENSORS
                return frozenset({node}) if of_tensors else None
            if any(is_generator(callee) or not returned(callee) for callee in callees):
                return None
            values: list[tuple[Function, ast.expr | None]] = [
                (callee, value) for callee in callees for value in returned(callee)
            ]
        else:
            values = self._values(function, node)
        made = [None if value is None else self._made_of(at, value) for at, value in values]
        known = [found for found in made if found is not None]
        return frozenset[ast.AST]().union(*known) if known and len(known) == len(made) else None

    def _values(
        self, function: Function, node: ast.Name | ast.Attribute
    ) -> list[tuple[Function, ast.expr | None]]:
        if isinstance(node, ast.Name):
            held = self._reached.of(function, node)
            own = [value if isinstance(value, ast.expr) else None for value in held]
            return [(self._reached.holder(function, v) if v else function, v) for v in own]
        if node.attr in self._of_classes:
            return []
        groups = self._objects.groups(function.module, node)
        return [
            (self._body(module, target), value)
            for module, target, value in self._objects.stored.get(node.attr, ())
            if groups & self._objects.groups(module, target)
        ]

    @cached_property
    def _of_classes(self) -> frozenset[str]:
        """The names that the bodies of classes bind, which their objects share."""
        return frozenset(
            part.id
            for _, cls in self._project.nodes(ast.ClassDef)
            for stmt in cls.body
            if not isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            for part in ast.walk(stmt)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        )

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


def _are_displays(made: frozenset[ast.AST]) -> bool:
    """Tell whether lists, dicts and sets alone are made, of which no tensor is a part."""
    return all(isinstance(node, _DISPLAYS) for node in made)


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
