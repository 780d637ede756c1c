"""The variables that hold GradScalers."""

from __future__ import annotations

import ast
from typing import NamedTuple

from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Module


class Variable(NamedTuple):
    """A name of a GradScaler, with the scope that binds it."""

    module: Module
    scope: ScopeNode
    name: str

    def stands_at(self, point: Point) -> bool:
        """Tell whether a point loads, stores or deletes the variable."""
        node = point.node
        if not isinstance(node, ast.Name) or node.id != self.name:
            return False
        return self.module.scopes.owner(node) is self.scope
