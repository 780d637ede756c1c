"""Variables that have no value in a run: all that gives them one stands in branches that the run does not take."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_set

_Variable = tuple[Module, ast.AST, str]


class Unbound:
    """Answers for a run; `reached` tells whether it may come to a node of a function."""

    def __init__(self, project: Project, reached: Callable[[Function, ast.AST], bool]) -> None:
        self._project = project
        self._reached = reached
        self._known: dict[_Variable, bool] = {}

    def reads(self, module: Module, node: ast.AST) -> bool:
        """Tell whether evaluating a node raises, as it reads such a variable for certain."""
        return any(not self._is_bound(module, name, frozenset()) for name in _read(node))

    def _is_bound(self, module: Module, name: ast.Name, asked: frozenset[_Variable]) -> bool:
        """Tell whether a variable may have a value that it has of others than those which are asked already."""
        owner = module.scopes.owner(name)
        if owner is None or name not in module.tree.parents:
            return True
        variable = module, owner, name.id
        if variable in asked or variable in self._known:
            return variable not in asked and self._known[variable]
        inner = asked | {variable}
        found = self._comes_from_elsewhere(module, owner, name.id) or any(
            self._binds(module, binding, inner) for binding in module.scopes.bound(name)
        )
        if found or not asked:
            self._known[variable] = found
        return found

    def _comes_from_elsewhere(self, module: Module, owner: ast.AST, name: str) -> bool:
        if owner is not module.tree.module:
            return False
        set_there = (
            isinstance(self._project.resolve(where, node.value), Module)
            for where, node in where_set(self._project, name)
        )
        return bool(module.scopes.stars) or any(set_there)

    def _binds(self, module: Module, binding: ast.AST, asked: frozenset[_Variable]) -> bool:
        if binding not in module.tree.parents:
            return True
        if not self._reached(self._project.function_of(module, binding), binding):
            return False
        value = assigned(module.tree, binding)
        return value is None or all(self._is_bound(module, n, asked) for n in _read(value))


def _read(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the variables that are read wherever a node is evaluated, whatever comes out on the way."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        yield from _read(node.value)
    elif isinstance(node, ast.Call):
        for part in (node.func, *node.args, *(k.value for k in node.keywords)):
            yield from _read(part)
