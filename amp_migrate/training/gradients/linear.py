"""Gradients that only pass through linear maps on their way back into gradients, as a sum over processes in one flat tensor.

What such a map does to gradients it does to any multiple of them, so that it may run before or behind a division by
the loss scale. What is not known to be linear, and whatever keeps a value beyond the functions it runs in, reads them.
"""

from __future__ import annotations

import ast

from amp_migrate.project import Function, Module, Project
from amp_migrate.training.gradients.followed import Followed


class Linear:
    """Asks what becomes of gradients, through names, collections and calls."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._known: dict[ast.expr, Followed] = {}

    def stays(self, module: Module, gradient: ast.expr) -> bool:
        """Tell whether all that is made of a gradient depends on it linearly, and ends in gradients or nowhere."""
        return self._followed(module, gradient).is_linear

    def gives(self, function: Function, value: ast.expr | None) -> bool:
        """Tell whether a value is made of gradients of the same function, and of nothing else, by such maps."""
        return value is not None and any(
            isinstance(node, ast.Attribute)
            and node.attr == "grad"
            and isinstance(node.ctx, ast.Load)
            and (found := self._followed(function.module, node)).is_linear
            and value in found.seen
            and found.is_alike(function.module, value)
            for node in function.own_nodes
        )

    def _followed(self, module: Module, gradient: ast.expr) -> Followed:
        if gradient not in self._known:
            self._known[gradient] = Followed(self._project, module, gradient)
        return self._known[gradient]
