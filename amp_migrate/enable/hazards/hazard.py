"""What is said of something that 16 bits break."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.plan.model import Finding, Status
from amp_migrate.project import Module


@dataclass(frozen=True, eq=False)
class Hazard:
    """Something that 16 bits break: the rule that speaks of it, where, and what to do."""

    code: str
    module: Module
    node: ast.expr
    message: str
    advice: str = ""

    def finding(self, status: Status = Status.NOTE) -> Finding:
        """Return what is said about it."""
        place = self.module.path, self.module.tree.span(self.node)
        return Finding(*place, self.code, status, self.message, self.advice)
