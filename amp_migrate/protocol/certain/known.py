"""Which GradScalers and optimizers of a project are known well enough to say what is done to them."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.project import Module, Project
from amp_migrate.training.named import Groups
from amp_migrate.training.objects import Objects


class Known:
    """Asks the objects of a project."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._project = project
        self._objects = objects

    @cached_property
    def strangers(self) -> list[tuple[Module, ast.Call]]:
        """The steps of what the project clears as well, and no call in sight makes nor GradScaler serves."""
        cleared = {group for _, groups in self._unknown("zero_grad") for group in groups}
        return [at for at, groups in self._unknown("step") if groups & cleared]

    def _unknown(self, method: str) -> list[tuple[tuple[Module, ast.Call], Groups]]:
        """Return the calls of a method of neither a GradScaler nor a known optimizer, with the names of the object."""
        found = []
        for module, call in self._objects.method_calls.get(method, []):
            if isinstance(call.func, ast.Attribute) and not self._project.callees(call):
                held = self._objects.groups(module, call.func.value)
                if self._objects.scaler(module, call.func.value) is None:
                    if not any(o.groups & held for o in self._objects.optimizers):
                        found.append(((module, call), held))
        return found

    def is_of_torch(self, number: int) -> bool:
        """Tell whether no method of a GradScaler is one of the project, which may do something else."""
        return not any(
            self._project.callees(call)
            for method in ("scale", "unscale_", "step", "update")
            for module, call in self._objects.method_calls.get(method, [])
            if isinstance(call.func, ast.Attribute)
            and self._objects.scaler(module, call.func.value) == number
        )

    def is_followed(self, number: int) -> bool:
        """Tell whether every call that makes an optimizer is known as one, or code out of sight hands it in."""
        optimizer = next(o for o in self._objects.optimizers if o.number == number)
        calls = [call for _, call in self._objects.results.of(optimizer.groups)]
        makers = [call for call in calls if not self._project.callees(call)]
        if makers:
            return all(call in self._objects.makers.calls for call in makers)
        steps = self._objects.method_calls.get("step", [])
        named = [(module, a) for module, call in steps for a in call.args[:1]]
        given = [(m, a) for m, a in named if optimizer.groups & self._objects.groups(m, a)]
        return all(self._is_handed_in(module, node) for module, node in given)

    def _is_handed_in(self, module: Module, node: ast.expr) -> bool:
        scope = module.scopes.owner(node) if isinstance(node, ast.Name) else None
        if scope is None or not isinstance(node, ast.Name):
            return False
        bound = module.scopes.bindings(scope, node.id)
        function = self._project.function_of(module, node)
        return all(isinstance(b, ast.arg) for b in bound) and not self._project.callers(function)
