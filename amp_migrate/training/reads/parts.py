"""Runs of the parts of a network in its own methods, where some of them run without gradients."""

from __future__ import annotations

import ast

from amp_migrate.facts.below import every
from amp_migrate.facts.paths import bottom
from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.training.beliefs import RUNS_NO_FORWARD
from amp_migrate.training.forwards.given import Given
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects
from amp_migrate.values.objects import Made

_WITHOUT = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})


class Parts:
    """Finds the calls of the parts of networks, in classes that stop gradients somewhere."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects
        self._given = Given(project, objects)
        self._stops: dict[Class, bool] = {}

    def run(self, function: Function, call: ast.Call) -> Groups:
        """Return the names of the part of its own network that a call in a method runs."""
        cls, part = function.cls, call.func
        if cls is None or not isinstance(part, ast.Attribute) or self._project.callees(call):
            return frozenset()
        base = bottom(part)
        if not function.is_receiver(base):
            return frozenset()
        if part.attr in RUNS_NO_FORWARD or not self._stops_gradients(cls):
            return frozenset()
        if self._is_of_another(function.module, part.value):
            return frozenset()
        return self._objects.groups(function.module, part)

    def _is_of_another(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an object is known to be made by a library, and to be no network: a GradScaler, or a list."""
        facts = self._project.values.facts(module, node)
        made = bool(facts) and all(isinstance(fact, Made) for fact in facts)
        return made and not self._given.may_be_module(module, node)

    def _stops_gradients(self, cls: Class) -> bool:
        if cls not in self._stops:
            self._stops[cls] = any(
                isinstance(node, ast.Name | ast.Attribute)
                and (node.id if isinstance(node, ast.Name) else node.attr) in _WITHOUT
                for node in every(cls.node)
            )
        return self._stops[cls]
