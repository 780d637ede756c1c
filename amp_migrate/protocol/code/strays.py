"""Functions that only travel as values, and the calls of which nothing tells what they run."""

from __future__ import annotations

import ast
from functools import cached_property

from amp_migrate.facts.below import every
from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import looked_up
from amp_migrate.modules.binding import fits
from amp_migrate.project import CallSite, Function, Module, Project
from amp_migrate.project.programs import beside, is_run_by_pytest
from amp_migrate.protocol.code.stored import Stored
from amp_migrate.training.beliefs import READS_GRADIENTS
from amp_migrate.training.steppers import is_optimizer_class
from amp_migrate.values.links.onward import Onward

_TELLING = READS_GRADIENTS | {"backward", "grad", "step", "unscale_", "zero_grad"}


class Strays:
    """Hooks, handlers and callbacks: any call of a value that nobody knows may run each of them that fits."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stored = Stored(project)

    def of(self, module: Module, call: ast.Call) -> list[Function]:
        """Return the functions that a call without known callees may run: those that a program has beside it."""
        if not self._uncalled or not self._is_unknown(module, call):
            return []
        site = CallSite(self._project.function_of(module, call), call, bound=False)
        any_method = self._is_of_any_name(module, call)
        found = self._uncalled if any_method else self._held(module, call.func)
        near = beside(self._project, module.path)
        return [
            f
            for f in found
            if f.module.path in near and f is not site.function and fits(_as_method(site, f), f)
        ]

    def _held(self, module: Module, func: ast.expr) -> list[Function]:
        """Return those that may be what a call runs: what is looked up by name is, where that comes to the call."""
        known = ((f, near) for f, near in self._looked_up.items() if near is not None)
        looked_up = (f for f, near in known if near.reaches(module, func))
        return list(dict.fromkeys([*self._travelling, *looked_up]))

    @cached_property
    def _looked_up(self) -> dict[Function, Onward | None]:
        """Those that are looked up by their names, and where what is found there can come; None where that is not told."""
        values = self._project.values
        found: dict[Function, Onward | None] = {}
        for function in self._uncalled:
            places = [
                (user.module, node) for user, node, _ in self._project.unseen.looked_up(function)
            ]
            groups = [values.groups(module, _given(module, node)) for module, node in places]
            if groups:
                found[function] = values.onward(set().union(*groups)) if all(groups) else None
        return found

    @cached_property
    def _travelling(self) -> list[Function]:
        """Those that travel as values, or are looked up where it is not told what becomes of that."""
        near = self._looked_up
        return [
            f
            for f in self._uncalled
            if self._project.unseen.travelling(f) or (f in near and near[f] is None)
        ]

    @cached_property
    def _uncalled(self) -> list[Function]:
        """The functions that nothing is seen to call, and that touch gradients."""
        return [
            function
            for function in self._project.functions()
            if function.node is not None
            and function.name != "__init__"
            and not function.is_property
            and (not is_run_by_pytest(function) or self._project.unseen.travelling(function))
            and not _is_step_of_optimizer(function)
            and _touches_gradients(function.node)
            and not self._project.callers(function)
        ]

    def _is_of_any_name(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call is ``getattr(x, name)()`` of an object and a name that are not known."""
        found = looked_up(call.func)
        if found is None:
            return False
        base, name = found
        known = self._project.meanings(module, base) or self._project.values.facts(module, base)
        return not known and not isinstance(name, ast.Constant)

    def _is_unknown(self, module: Module, call: ast.Call) -> bool:
        """Tell whether a call runs a value that comes from nowhere in sight."""
        func = call.func
        if isinstance(func, ast.Name):
            if module.scopes.owner(func) is None:
                return False
        elif isinstance(func, ast.Attribute):
            if not self._stored.holds_function(func.attr):
                return False
        elif not isinstance(func, ast.Subscript | ast.Call):
            return False
        if self._project.callees(call) or self._project.constructed(call):
            return False
        if self._project.external(module, func) is not None:
            return False
        values = self._project.values
        return not values.made_by(module, func) and not values.instance_classes(module, func)


def _given(module: Module, node: ast.expr) -> ast.expr:
    """Return what a lookup gives: itself, or an item of ``globals()``."""
    up = module.tree.parent(node)
    if last_name(node) == "getattr" or not isinstance(up, ast.Attribute | ast.Subscript):
        return node
    called = module.tree.parent(up)
    return called if isinstance(called, ast.Call) and called.func is up else up


def _is_step_of_optimizer(function: Function) -> bool:
    """Tell whether a function is the step of an optimizer, which runs where that is stepped."""
    cls = function.cls
    return function.name == "step" and cls is not None and is_optimizer_class(cls)


def _as_method(site: CallSite, function: Function) -> CallSite:
    """Return a call as one of a method that is bound to its object."""
    return CallSite(site.function, site.call, function.cls is not None)


def _touches_gradients(node: ast.AST) -> bool:
    return any(
        (isinstance(part, ast.Attribute) and part.attr in _TELLING)
        or (isinstance(part, ast.Name) and part.id in READS_GRADIENTS)
        for part in every(node)
    )
