"""The answer of a step that would have to guess."""

from __future__ import annotations

import ast
from pathlib import PurePath

from amp_migrate.plan.model import Finding, Place, Status
from amp_migrate.project import Function, Module


class Cannot(Exception):
    """A unit cannot be migrated: where, why, and what a person should do.

    `named` are the places that the message or the advice names; `program` are the files of the one that is in the way,
    where that is known.
    """

    def __init__(
        self,
        code: str,
        module: Module,
        node: ast.AST,
        message: str,
        advice: str,
        named: tuple[Place, ...] = (),
        program: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.module = module
        self.node = node
        self.message = message
        self.advice = advice
        self.named = named
        self.program = program

    def finding(self) -> Finding:
        """Return the finding that reports it."""
        place = place_of(self.module, self.node)
        said = self.message, self.advice
        return Finding(*place, self.code, Status.LEFT, *said, named=self.named)


class Unwritable(Exception):
    """A training that cannot be described as today's amp would have it: where, why, and what a person should do."""

    def __init__(self, module: Module, node: ast.AST, message: str, advice: str) -> None:
        super().__init__(message)
        self.module = module
        self.node = node
        self.message = message
        self.advice = advice


class OutOfReach(Cannot):
    """The GradScaler cannot be handed to where it is needed."""


def place_of(module: Module, node: ast.AST) -> Place:
    """Return where a node stands."""
    return Place(module.path, module.tree.span(node))


def spoken(function: Function) -> str:
    """Return what a message calls a function, or the code of a file that stands in none."""
    if function.node is None:
        return f"the top level of {PurePath(function.module.path).name}"
    return f"{function.qualname}()"
