"""The answer of a step that would have to guess."""

from __future__ import annotations

import ast

from amp_migrate.plan import Finding, Status
from amp_migrate.project import Module


class Cannot(Exception):
    """A unit cannot be migrated: where, why, and what a person should do."""

    def __init__(self, code: str, module: Module, node: ast.AST, message: str, advice: str) -> None:
        super().__init__(message)
        self.code = code
        self.module = module
        self.node = node
        self.message = message
        self.advice = advice

    def finding(self) -> Finding:
        """Return the finding that reports it."""
        place = self.module.tree.span(self.node)
        return Finding(self.module.path, place, self.code, Status.LEFT, self.message, self.advice)
