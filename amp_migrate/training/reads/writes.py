"""Where weights are written by hand: averages, clipping, copies of one network into another."""

from __future__ import annotations

import ast

from amp_migrate.project import Function
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.objects import Objects
from amp_migrate.training.reads.gradients import hands_out

_NOT_WRITTEN = frozenset({"requires_grad_", "share_memory_", "retain_grad_", "__init__"})


class Writes:
    """Asks whether a call or an assignment writes weights."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def by_call(self, function: Function, call: ast.Call) -> bool:
        """Tell whether a method writes weights: an operation in place, or the state of a network that is loaded."""
        method = call.func
        if not isinstance(method, ast.Attribute):
            return False
        module = function.module
        if method.attr == "load_state_dict":
            if self._objects.optimizers_of(module, method.value):
                return False
            given = [owner for arg in call.args if (owner := _of_state(arg)) is not None]
            return any(self._objects.is_network(module, node) for node in (method.value, *given))
        in_place = method.attr.endswith("_") and not method.attr.startswith("_")
        if not in_place or method.attr in _NOT_WRITTEN:
            return False
        return self._is_weight(function, method.value)

    def by_store(self, function: Function, node: ast.Attribute) -> bool:
        """Tell whether ``p.data`` is assigned to."""
        stored = node.attr == "data" and isinstance(node.ctx, ast.Store)
        return stored and self._is_weight(function, node.value)

    def _is_weight(self, function: Function, node: ast.expr) -> bool:
        """Tell whether an expression is a parameter out of a loop over those of a network."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        while isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        if not isinstance(node, ast.Name):
            return False
        scopes = function.module.scopes
        scope = scopes.owner(node)
        values = (
            bound_value(function.module, binding)
            for binding in (scopes.bindings(scope, node.id) if scope is not None else ())
        )
        return any(value is not None and hands_out(value) for value in values)


def _of_state(node: ast.expr) -> ast.expr | None:
    """Return `x` of ``x.state_dict()``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "state_dict" else None
    return None
