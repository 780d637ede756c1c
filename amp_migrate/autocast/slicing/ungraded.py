"""Statements that run networks without gradients alone: in a block of their own, or in the helpers that they call."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import walk
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.contexts import keeps_no_graph, runs_without_gradients
from amp_migrate.training.forwards.forwards import Forward, Forwards


class Ungraded:
    """Answers for the statements of a project; a helper that calls itself counts as one with gradients."""

    def __init__(self, project: Project, forwards: Forwards) -> None:
        self._project = project
        self._forwards = forwards
        self._known: dict[Function, bool] = {}

    def __call__(self, module: Module, stmt: ast.stmt) -> bool:
        """Tell whether a statement certainly runs networks, and all of them without gradients."""
        if runs_without_gradients(self._project, module, stmt) is True:
            return True
        return not isinstance(stmt, ast.With) and self._all(module, stmt)

    def _all(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a statement, or all of a function, runs networks only where no gradients are kept."""
        networks = [
            part
            for part in walk(node)
            if isinstance(part, ast.Call) and self._forwards.call(module, part) >= Forward.CRITERION
        ]
        whole = isinstance(node, FunctionNode)
        graded = [
            call
            for call in networks
            if not whole or not keeps_no_graph(self._project, module, call)
        ]
        run = [self._project.callees(call) for call in graded]
        return bool(networks) and all(f and all(map(self._function, f)) for f in run)

    def _function(self, function: Function) -> bool:
        if function not in self._known:
            self._known[function] = False
            self._known[function] = function.node is not None and self._all(
                function.module, function.node
            )
        return self._known[function]
