"""Functions that only travel as values, and the calls of which nothing tells what they run."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.below import every
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.project.binding import fits
from amp_migrate.training.beliefs import READS_GRADIENTS

_TELLING = READS_GRADIENTS | {"backward", "grad", "step", "unscale_", "zero_grad"}


class Strays:
    """Hooks, handlers and callbacks: any call of a value that nobody knows may run each of them that fits."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def of(self, module: Module, call: ast.Call) -> list[Function]:
        """Return the functions that a call without known callees may run."""
        if not self._functions or not self._is_unknown(module, call):
            return []
        site = CallSite(self._project.function_of(module, call), call, bound=False)
        found = [f for f in self._functions if fits(_as_method(site, f), f)]
        return [f for f in found if f is not site.function]

    @cached_property
    def _functions(self) -> list[Function]:
        """The functions that nothing is seen to call, that touch gradients, and that travel as values."""
        return [
            function
            for function in self._project.functions()
            if function.node is not None
            and function.name != "__init__"
            and not function.is_property
            and not _is_step_of_optimizer(function)
            and _touches_gradients(function.node)
            and not self._project.callers(function)
            and self._project.travels(function)
        ]

    def _is_unknown(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs a value that comes from nowhere in sight."""
        func = call.func
        if isinstance(func, ast.Name):
            if module.scopes.owner(func) is None:
                return False
        elif isinstance(func, ast.Attribute):
            if func.attr not in self._stored:
                return False
        elif not isinstance(func, ast.Subscript | ast.Call):
            return False
        if self._project.callees(call) or self._project.constructed(call):
            return False
        if self._project.external(module, func) is not None:
            return False
        values = self._project.values
        return not values.made_by(module, func) and not values.instance_classes(module, func)

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The names of the attributes that something is assigned to."""
        return frozenset(
            node.attr
            for module in self._project.modules.values()
            for node in module.tree.nodes(ast.Attribute)
            if isinstance(node.ctx, ast.Store)
        )


def _is_step_of_optimizer(function: Function) -> bool:
    """Tell whether a function is the step of an optimizer, which runs where that is stepped."""
    bases = function.cls.externals() if function.cls is not None else ()
    return function.name == "step" and any(
        base.startswith("torch.optim.") and base.endswith("Optimizer") for base in bases
    )


def _as_method(site: CallSite, function: Function) -> CallSite:
    """Return a call as one of a method that is bound to its object."""
    return CallSite(site.function, site.call, function.cls is not None)


def _touches_gradients(node: ast.AST) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr in _TELLING)
        or (isinstance(part, ast.Name) and part.id in READS_GRADIENTS)
        for part in every(node)
    )
