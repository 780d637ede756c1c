"""Variables that have no value in a run: all that gives them one stands in branches that the run does not take."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_set

_Variable = tuple[Module, ast.AST, str]


class Always:
    """Knows what nodes read of variables that some run may leave without a value, whatever holds in it.

    `tests` gives the tests around a node of a function, None where no path leads to it.
    """

    def __init__(self, project: Project, tests: Callable[[Function, ast.AST], object]) -> None:
        self._project = project
        self._tests = tests
        self._bound: dict[_Variable, bool] = {}
        self._reads: dict[ast.AST, list[ast.Name]] = {}

    def open(self, module: Module, node: ast.AST) -> list[ast.Name]:
        """Return the variables that evaluating a node reads for certain, without those that always have a value."""
        if node not in self._reads:
            self._reads[node] = [name for name in _read(node) if not self._has(module, name)]
        return self._reads[node]

    def _has(self, module: Module, name: ast.Name) -> bool:
        owner = module.scopes.owner(name)
        if owner is None or name not in module.tree.parents:
            return True
        variable = module, owner, name.id
        if variable not in self._bound:
            self._bound[variable] = False
            self._bound[variable] = comes_from_elsewhere(self._project, *variable) or any(
                self._gives(module, binding) for binding in module.scopes.bound(name)
            )
        return self._bound[variable]

    def _gives(self, module: Module, binding: ast.AST) -> bool:
        if binding not in module.tree.parents:
            return True
        tests = self._tests(self._project.function_of(module, binding), binding)
        value = assigned(module.tree, binding)
        return tests == [] and (
            value is None or all(self._has(module, name) for name in _read(value))
        )


class Unbound:
    """Answers for a run; `reached` tells whether it may come to a node of a function."""

    def __init__(
        self, project: Project, reached: Callable[[Function, ast.AST], bool], always: Always
    ) -> None:
        self._project = project
        self._reached = reached
        self._always = always
        self._known: dict[_Variable, bool] = {}

    def reads(self, module: Module, node: ast.AST) -> bool:
        """Tell whether evaluating a node raises, as it reads such a variable for certain."""
        names = self._always.open(module, node)
        return any(not self._is_bound(module, name, frozenset()) for name in names)

    def _is_bound(self, module: Module, name: ast.Name, asked: frozenset[_Variable]) -> bool:
        """Tell whether a variable may have a value that it has of others than those which are asked already."""
        owner = module.scopes.owner(name)
        if owner is None or name not in module.tree.parents:
            return True
        variable = module, owner, name.id
        if variable in asked or variable in self._known:
            return variable not in asked and self._known[variable]
        inner = asked | {variable}
        found = comes_from_elsewhere(self._project, *variable) or any(
            self._binds(module, binding, inner) for binding in module.scopes.bound(name)
        )
        if found or not asked:
            self._known[variable] = found
        return found

    def _binds(self, module: Module, binding: ast.AST, asked: frozenset[_Variable]) -> bool:
        if binding not in module.tree.parents:
            return True
        if not self._reached(self._project.function_of(module, binding), binding):
            return False
        value = assigned(module.tree, binding)
        return value is None or all(self._is_bound(module, n, asked) for n in _read(value))


def comes_from_elsewhere(project: Project, module: Module, owner: ast.AST, name: str) -> bool:
    """Tell whether another file may give a variable of a file a value."""
    if owner is not module.tree.module:
        return False
    set_there = (
        isinstance(project.resolve(where, node.value), Module)
        for where, node in where_set(project, name)
    )
    return bool(module.scopes.stars) or any(set_there)


def _read(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the variables that are read wherever a node is evaluated, whatever comes out on the way."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        yield from _read(node.value)
    elif isinstance(node, ast.Call):
        for part in (node.func, *node.args, *(k.value for k in node.keywords)):
            yield from _read(part)
