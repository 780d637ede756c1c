"""What of a new text is of native AMP: by what its variables and attributes hold, not by their being new."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.sides import Side
from amp_migrate.check.statements.alike import itself
from amp_migrate.check.statements.words import NAMES, Words
from amp_migrate.facts.below import every
from amp_migrate.project import Function
from amp_migrate.project.reach import where_set
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.contexts import is_native


class Native:
    """Tells what of the new text is of native AMP, or holds what is."""

    def __init__(self, old: Side, new: Side) -> None:
        self._new = new
        self._brought = Words(new, old)
        self._known: dict[ast.AST, bool] = {}

    def itself(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a part of the new text is of native AMP, whatever it is given."""
        return any(self.mentioned(function, part) for part in itself(node))

    def mentioned(self, function: Function, node: ast.AST) -> bool:
        """Tell whether something of native AMP stands in a part of the new text."""
        return any(self._is_of(function, n) for n in every(node) if isinstance(n, NAMES))

    def comes(self, function: Function, node: ast.Name) -> bool:
        """Tell whether only the new text has a variable."""
        return self._brought.alone(function, node)

    def handed_in(self, function: Function, node: ast.expr) -> bool:
        """Tell whether something is a parameter that only the new text has, of a function that no call gives anything."""
        if not isinstance(node, ast.Name) or not self._brought.alone(function, node):
            return False
        bound = list(function.module.scopes.bound(node))
        called = self._new.project.callers(function)
        return not called and bool(bound) and all(isinstance(b, ast.arg) for b in bound)

    def _is_of(self, function: Function, node: ast.Name | ast.Attribute) -> bool:
        if node not in self._known:
            self._known[node] = False  # for what is set by itself
            self._known[node] = self._holds(function, node)
        return self._known[node]

    def _holds(self, function: Function, node: ast.Name | ast.Attribute) -> bool:
        module, project = function.module, self._new.project
        if is_native(project.external(module, node)):
            return True
        if self._new.program.training.objects.scaler(module, node) is not None:
            return True
        if not self._brought.alone(function, node):
            return False
        return any(self.mentioned(where, value) for where, value in self._values(function, node))

    def _values(
        self, function: Function, node: ast.Name | ast.Attribute
    ) -> Iterator[tuple[Function, ast.expr]]:
        """Yield what a name or an attribute is bound to, wherever it is; a parameter of a function as what calls give it."""
        project = self._new.project
        if isinstance(node, ast.Attribute):
            for module, stored in where_set(project, node.attr):
                value = getattr(module.tree.statement(stored), "value", None)
                if value is not None:
                    yield project.function_of(module, stored), value
            return
        for binding in function.module.scopes.bound(node):
            where = project.function_of(function.module, binding)
            if isinstance(binding, ast.arg):
                given = project.received(where, binding.arg, itself=True)
                yield from ((got.function, got.node) for got in given if got.node is not None)
                continue
            value = bound_value(function.module, binding)
            if value is None:
                value = getattr(function.module.tree.statement(binding), "value", None)
            if value is not None:
                yield where, value
