"""Networks that an object holds beside the one which Apex was given: other attributes of it, as a teacher beside its student."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from amp_migrate.autocast.evaluated.others import is_network
from amp_migrate.facts.paths import all_given
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Class, Function, Module
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.classes import is_of_network


class Beside:
    """Answers for the expressions of functions that run outside of the networks; `models` are those that are initialized.

    What one factory makes under several names may be one network as far as its values show: attributes of one object are not.
    """

    def __init__(self, unit: Unit, models: set[int]) -> None:
        self._unit = unit
        self._project = unit.project
        self._models = models

    def run(self, function: Function, call: ast.Call) -> ast.expr | None:
        """Return the network beside one that is initialized which a call runs, or hands to a function that does."""
        if not self._given:
            return None
        if self._is_one(function, call.func):
            return call.func
        callees = [callee for callee in self._project.callees(call) if not is_of_network(callee)]
        for given in all_given(call) if callees else ():
            if self._is_one(function, given):
                names = ((c, name) for c in callees for name in self._names(call, c, given))
                if any(_calls(*each) for each in names):
                    return given
        return None

    def _names(self, call: ast.Call, callee: Function, given: ast.expr) -> Iterator[str]:
        values = self._project.given(call, callee).items()
        return (name for name, value in values if value is given)

    @cached_property
    def _given(self) -> dict[str, set[Class]]:
        """The attributes of their objects that are initialized, with the classes where they are."""
        found: dict[str, set[Class]] = {}
        for module, node in self._unit.models():
            function = self._project.function_of(module, node)
            if _is_own(function, node) and function.cls is not None:
                assert isinstance(node, ast.Attribute)
                found.setdefault(node.attr, set()).update(function.cls.mro())
        return found

    def _is_one(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is an attribute of its object that holds another network than the one initialized there."""
        if not _is_own(function, node) or function.cls is None:
            return False
        assert isinstance(node, ast.Attribute)
        near = {name for name, held in self._given.items() if held & {*function.cls.mro()}}
        if not near or node.attr in near or not is_network(self._unit, function.module, node):
            return False
        groups = self._project.values.groups
        if groups(function.module, node) & self._models:
            return False
        stored = program_of(self._project).training.objects.stored.get(node.attr, [])
        return not any(
            self._is_taken(module, value, near)
            for module, target, value in stored
            if not _is_handed_back(module, target, value)
        )

    def _is_taken(self, module: Module, value: ast.expr, near: set[str]) -> bool:
        """Tell whether what is stored in an attribute is made of a network that is initialized, or is a part of one."""
        groups = self._project.values.groups
        return any(
            (isinstance(part, ast.Attribute) and part.attr in near)
            or bool(groups(module, part) & self._models)
            for part in ast.walk(value)
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript)
        )


def _is_own(function: Function, node: ast.expr) -> bool:
    """Tell whether an expression is an attribute of the object of a method."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and function.is_receiver(node.value)
    )


def _is_handed_back(module: Module, target: ast.Attribute, value: ast.expr) -> bool:
    """Tell whether a call hands back what it is given of an attribute among others: ``self.a, self.b = wrap(self.a, self.b)``."""
    up = module.tree.parent(target)
    if not isinstance(up, ast.Tuple | ast.List) or not isinstance(value, ast.Call):
        return False
    return any(ast.unparse(given) == ast.unparse(target) for given in all_given(value))


def _calls(function: Function, name: str) -> bool:
    """Tell whether a function calls what it gets for a parameter."""
    return any(isinstance(c.func, ast.Name) and c.func.id == name for c in function.calls)
