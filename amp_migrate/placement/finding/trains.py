"""What runs a backward pass or a step, itself or through what it calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path, walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import reachable
from amp_migrate.training.steps import backward_of


class Trains:
    """Tells whether statements change gradients: a forward ends there, and no zero_grad moves over them.

    Gradients of copies that a function makes for itself do not count.
    """

    def __init__(self, unit: Unit) -> None:
        self._project = unit.project
        items = [*unit.backwards, *unit.probes]
        steps = [(s.function, s.call) for s in unit.steps] + list(_steps_in_sight(unit))
        self._nodes: set[ast.AST] = {b.node for b in items} | {call for _, call in steps}
        self._functions = {b.function for b in items} | {function for function, _ in steps}
        self._functions |= {
            unit.project.function_of(module, node)
            for module, node in unit.calls()
            if self._is_backward(node)
        }
        self._functions -= unit.copying
        self._nodes -= {b.node for b in unit.probes if b.function in unit.copying}
        self._known: dict[Function, bool] = {}

    def __call__(self, module: Module, stmt: ast.AST) -> bool:
        """Tell whether a statement runs a backward or steps an optimizer, or calls what does."""
        if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        return any(self._is_training(node) for node in walk(stmt))

    def _is_training(self, node: ast.AST) -> bool:
        if node in self._nodes:
            return True
        if not isinstance(node, ast.Call):
            return False
        callees = self._project.callees(node)
        return self._is_backward(node) or any(map(self._reaches, callees)) or self._may_train(node)

    def _may_train(self, call: ast.Call) -> bool:
        """Tell whether a call runs a ``functools.partial`` of something that is unpacked, whatever that is."""
        kept = self._project.values.kept_by(self._project.module_of(call), call.func)
        return any(isinstance(made.args[0], ast.Starred) for _, made in kept if made.args)

    def _reaches(self, function: Function) -> bool:
        known = self._known.get(function)
        if known is None:
            known = bool(self._functions & reachable(self._project, function))
            self._known[function] = known
        return known

    def _is_backward(self, node: ast.Call) -> bool:
        loss = backward_of(node)
        if loss is None or path(loss) in ("super", "torch.autograd"):
            return False
        around = self._project.holder(node)
        return path(loss) not in around.receivers


def _steps_in_sight(unit: Unit) -> Iterator[tuple[Function, ast.Call]]:
    """Yield the steps of all optimizers in sight, as a caller brings one that is none of the unit's, with their functions."""
    objects = unit.losses.objects
    for module, call in objects.method_calls.get("step", ()):
        if isinstance(call.func, ast.Attribute) and not unit.project.callees(call):
            if objects.optimizers_of(module, call.func.value):
                yield unit.project.function_of(module, call), call
