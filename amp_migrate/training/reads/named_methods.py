"""Methods of objects that something else holds, and that are called by it: ``clear = optimizer.zero_grad; clear()``."""

from __future__ import annotations

import ast

from amp_migrate.project import Function, Project
from amp_migrate.training.origins.reaching import Reaching
from amp_migrate.values.calling.methods import only_clears
from amp_migrate.values.objects import Method


class NamedMethods:
    """Finds which methods of objects of libraries a call runs that does not spell them."""

    def __init__(self, project: Project, reached: Reaching) -> None:
        self._called = project.values.methods_called
        self._reached = reached

    def run(self, function: Function, call: ast.Call) -> list[Method]:
        """Return the methods that a call in a function may run; by a variable, those that it was bound to last."""
        found = self._called.get(call, [])
        if not found or not isinstance(call.func, ast.Name):
            return found
        held = [_method(value) for value in self._reached.of(function, call.func)]
        last = [method for method in found if method.node in held]
        return last if last and len(last) == len(set(held)) else found


def _method(value: object) -> object:
    """Return the method that a value is, that ``partial`` is given first, or that a lambda calls."""
    if isinstance(value, ast.Lambda):
        return only_clears(value)
    return value.args[0] if isinstance(value, ast.Call) and value.args else value
