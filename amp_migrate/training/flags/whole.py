"""Expressions that are whole numbers in every run, as far as text shows: counters, lengths, and what is computed of them."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import YIELDS
from amp_migrate.facts.scopes import assigned
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.training.flags.turns import turns

_KEEPS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_GIVES = frozenset({"int", "len"})


def is_whole(project: Project, function: Function, node: ast.expr) -> bool:
    """Tell whether an expression of a function is a whole number whenever it is evaluated."""
    return _known(project).is_whole(function, node)


class _Whole:
    def __init__(self, project: Project) -> None:
        self._project = project
        self._bound: dict[ast.AST, bool] = {}

    def is_whole(self, function: Function, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, _KEEPS) and all(
                self.is_whole(function, part) for part in (node.left, node.right)
            )
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub) and self.is_whole(function, node.operand)
        if isinstance(node, ast.Call):
            return function.module.scopes.builtin(node.func) in _GIVES
        if not isinstance(node, ast.Name):
            return False
        bound = function.module.scopes.bound(node)
        return bool(bound) and all(self._binds(function, binding) for binding in bound)

    def _binds(self, function: Function, binding: ast.AST) -> bool:
        """Tell whether a binding of a variable gives it whole numbers, if the variable holds one before."""
        if binding not in self._bound:
            self._bound[binding] = True  # as long as nothing on the way says otherwise
            self._bound[binding] = self._gives(function, binding)
        return self._bound[binding]

    def _gives(self, function: Function, binding: ast.AST) -> bool:
        tree = function.module.tree
        if isinstance(binding, ast.arg):
            return self._received(self._project.holder(binding), binding.arg)
        up = tree.parent(binding)
        if isinstance(up, ast.AugAssign):
            return isinstance(up.op, _KEEPS) and self.is_whole(function, up.value)
        value = assigned(tree, binding)
        if value is not None and not isinstance(value, YIELDS):
            where = self._project.holder(value)
            return not isinstance(up, ast.Tuple) and self.is_whole(where, value)
        return isinstance(binding, ast.Name) and turns(self._project).counts(
            function.module, binding
        )

    def _received(self, function: Function, name: str) -> bool:
        """Tell whether all that may call a function is in sight, and gives a parameter whole numbers."""
        received = self._project.received(function, name)
        if not received or self._project.escapes(function):
            return False
        default = function.parameters.defaults.get(name)
        given = [(where, default if value is None else value) for _, where, value in received]
        return all(value is not None and self.is_whole(where, value) for where, value in given)


@once
def _known(project: Project) -> _Whole:
    return _Whole(project)
