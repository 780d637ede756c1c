"""Networks that a function has just made: no backward pass has run on them, so there are no gradients to read."""

from __future__ import annotations

import ast
from functools import cache

from amp_migrate.facts.closure import spread
from amp_migrate.facts.paths import all_given, path
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.project import Function, Project
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.steps import backward_of


class Fresh:
    """Asks whether an expression is, or is part of, what its function made, where nothing runs a backward pass."""

    def __init__(self, project: Project, graphs: Graphs) -> None:
        self._project = project
        self._graphs = graphs
        self._runs_backward = cache(self._may_run_backward)
        self._called = cache(self._run_by)

    def is_new(self, function: Function, node: ast.expr) -> bool:
        """Tell whether a network can have no gradients where a function names it."""
        return not self._runs_backward(function) and self._is_made(function, node, ())

    def _is_made(self, function: Function, node: ast.expr, seen: tuple[ast.AST, ...]) -> bool:
        if node in seen:
            return True  # on the way back to itself, as in ``model = load(model)``
        seen = (*seen, node)
        if isinstance(node, ast.Call):
            return self._makes(function, node, seen)
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        bound = self._bound(function, node)
        if bound:
            values = [bound_value(function.module, binding) for binding in bound]
            return all(v is not None and self._is_made(function, v, seen) for v in values)
        return isinstance(node, ast.Attribute) and self._is_made(function, node.value, seen)

    def _makes(self, function: Function, call: ast.Call, seen: tuple[ast.AST, ...]) -> bool:
        """Tell whether a call makes an object, is a method of one that is new, or hands a new one on."""
        if self._project.constructed(call):
            return True
        if function.is_class and function.is_receiver(call.func):
            return True
        name = self._project.external(function.module, call.func) or ""
        if name.startswith("torch.nn."):
            return True
        given = all_given(call)
        if isinstance(call.func, ast.Attribute):
            given.append(call.func.value)
        return any(
            isinstance(item, ast.Name | ast.Attribute) and self._is_made(function, item, seen)
            for item in given
        )

    def _bound(self, function: Function, node: ast.Name | ast.Attribute) -> list[ast.AST]:
        """Return what may have bound a variable of a function, or an attribute in a constructor, where it is read."""
        module, text = function.module, path(node)
        if isinstance(node, ast.Attribute):
            if function.name != "__init__" or not function.is_receiver(node.value):
                return []
        else:
            scope = module.scopes.owner(node)
            bindings = module.scopes.bindings(scope, node.id) if scope is function.scope else []
            if not bindings or any(isinstance(b, ast.arg) for b in bindings):
                return []

        def binds(point: Point) -> bool:
            if point.kind is not Kind.STORE:
                return False
            return isinstance(point.node, ast.Name | ast.Attribute) and path(point.node) == text

        before = self._graphs.of(function.scope).nearest_before(node, binds)
        return [point.node for point in before]

    def _may_run_backward(self, function: Function) -> bool:
        reached = spread([function], lambda one: self._called(one)[1])
        return any(self._called(one)[0] for one in reached)

    def _run_by(self, function: Function) -> tuple[bool, list[Function]]:
        """Tell whether a function runs a backward pass itself; with the functions that it may call."""
        calls = function.all_calls
        callees = (callee for call in calls for callee in self._project.callees(call))
        return any(backward_of(c) is not None for c in calls), list(dict.fromkeys(callees))
