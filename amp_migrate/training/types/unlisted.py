"""Products on no list of O1, as ``torch.einsum``: Apex ran them in the type of their operands, autocast runs them in fp16."""

from __future__ import annotations

import ast
from enum import Enum
from typing import NamedTuple

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.training.origins.losses import Losses
from amp_migrate.training.types.called import operands
from amp_migrate.training.types.floats import Helds, Kind
from amp_migrate.training.types.known import types_of
from amp_migrate.training.types.operators import UNLISTED

_WORDS = frozenset(name.rpartition(".")[2] for name in UNLISTED)


class Ran(Enum):
    """In which type Apex ran a product."""

    HALF = "fp16"
    WIDE = "fp32"
    UNKNOWN = "either"


class Verdict(NamedTuple):
    """In which type Apex ran a product; `narrow` are operands that autocast may make fp16."""

    ran: Ran
    narrow: tuple[ast.expr, ...] = ()


class Unlisted:
    """Answers for the products of a project."""

    def __init__(self, project: Project, losses: Losses) -> None:
        self._project = project
        self.types = types_of(project, losses)

    def is_one(self, module: Module, node: ast.AST) -> bool:
        """Tell whether a node is such a product, which the project did not register as one to run in fp16."""
        if not isinstance(node, ast.Call) or tail(node) not in _WORDS:
            return False
        name = self._project.external(module, node.func)
        return name in UNLISTED and tail(node) not in _registered(self._project)

    def verdict(self, function: Function, call: ast.Call) -> Verdict:
        """Return in which type Apex ran a product: it refused operands of two types."""
        name = self._project.external(function.module, call.func) or ""
        given = operands(call, name)
        held = [(each, _floating(self.types.of(function, each))) for each in given]
        apex = [{one.apex for one in kinds} for _, kinds in held]
        if {Kind.HALF} in apex:
            return Verdict(Ran.HALF)
        if {Kind.WIDE} in apex and not any(isinstance(each, ast.Starred) for each in given):
            narrow = [each for each, kinds in held if {one.native for one in kinds} != {Kind.WIDE}]
            return Verdict(Ran.WIDE, tuple(narrow))
        return Verdict(Ran.UNKNOWN)


def _floating(held: Helds) -> Helds:
    return frozenset(one for one in held if one.apex is not Kind.NUMBER)


@once
def has_unlisted(project: Project) -> bool:
    """Tell whether a project may have such a product anywhere."""
    calls = ((m, call) for m, call in project.nodes(ast.Call) if tail(call) in _WORDS)
    return any(project.external(module, call.func) in UNLISTED for module, call in calls)


@once
def _registered(project: Project) -> frozenset[str]:
    """Return the functions that a project has Apex run in fp16: ``amp.register_half_function(torch, "einsum")``."""
    return frozenset(
        string(argument(call, "name", 1)) or ""
        for _, call in project.nodes(ast.Call)
        if tail(call) == "register_half_function"
    )
