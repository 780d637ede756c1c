"""Whether a loss is multiplied by the loss scale where a backward pass runs on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import called_on
from amp_migrate.project import Anonymous, Function, Module, Project
from amp_migrate.training.bindings import returned
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.called_lambdas import CalledLambdas
from amp_migrate.training.origins.reaching import Reaching


class Scale:
    """Follows a loss back to the calls of ``scaler.scale``."""

    def __init__(
        self, project: Project, objects: Objects, reached: Reaching, lambdas: CalledLambdas
    ) -> None:
        self._project = project
        self._objects = objects
        self._reached = reached
        self._lambdas = lambdas

    def of(self, function: Function, loss: ast.expr) -> bool | None:
        """Tell whether a loss is scaled; None where it may be either."""
        found = set(self._scaled(function, loss, set()))
        return next(iter(found)) if len(found) == 1 else (None if found else False)

    def _scaled(self, function: Function, node: ast.expr, seen: set[ast.AST]) -> Iterator[bool]:
        """Yield what an expression may be, once for each way in which it comes about."""
        if node in seen:
            return
        seen.add(node)
        module = function.module
        if isinstance(node, ast.Call):
            yield from self._called(function, node, seen)
        elif isinstance(node, ast.BinOp | ast.UnaryOp):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.operand]
            yield any(True in set(self._scaled(function, side, seen)) for side in sides)
        elif isinstance(node, ast.IfExp):
            yield from self._scaled(function, node.body, seen)
            yield from self._scaled(function, node.orelse, seen)
        elif isinstance(node, ast.BoolOp):
            for operand in node.values:
                yield from self._scaled(function, operand, seen)
        elif isinstance(node, ast.NamedExpr):
            yield from self._scaled(function, node.value, seen)
        elif isinstance(node, ast.Name):
            for value in self._reached.of(function, node):
                if isinstance(value, ast.arg):
                    yield from self._given(function, value, seen)
                elif value is None:
                    yield False
                else:
                    yield from self._scaled(self._reached.holder(function, value), value, seen)
        else:
            yield self._holds_scaled(module, node)

    def _called(self, function: Function, call: ast.Call, seen: set[ast.AST]) -> Iterator[bool]:
        module = function.module
        if isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and call.args:
            if self._objects.scaler(module, call.func.value) is not None:
                yield True
                return
        callees = self._project.callees(call)
        if not callees:
            receiver = called_on(call)
            inside = [*call.args, *([receiver] if receiver is not None else [])]
            yield any(True in set(self._scaled(function, part, seen)) for part in inside)
        for callee in callees:
            for value in returned(callee):
                yield from self._scaled(callee, value, seen)

    def _given(self, function: Function, parameter: ast.arg, seen: set[ast.AST]) -> Iterator[bool]:
        if isinstance(function, Anonymous):
            for where, value, _ in self._lambdas.given(function, parameter):
                yield from self._scaled(where, value, seen)
            return
        received = self._project.received(function, parameter.arg)
        if not received:
            yield False
        for _, where, argument in received:
            if argument is not None:
                yield from self._scaled(where, argument, seen)
            else:
                yield False

    def _holds_scaled(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an attribute or item was assigned a scaled loss somewhere."""
        groups = self._objects.groups(module, node)
        if not groups:
            return False
        for where, call in self._objects.method_calls.get("scale", []):
            assert isinstance(call.func, ast.Attribute)
            if self._objects.groups(where, call) & groups:
                if self._objects.scaler(where, call.func.value) is not None:
                    return True
        return False
