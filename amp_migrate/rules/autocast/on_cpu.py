"""Outputs of networks that ``.cpu()`` copies: O1 made those fp32, autocast leaves them fp16."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.region import Region

_FRACTIONS = frozenset({"sigmoid", "softmax", "tanh"})
_KEEPS_TYPE = SHAPES | _FRACTIONS | {"clone", "cuda", "relu"}


class Copied(NamedTuple):
    """An ``x.cpu()`` of a function, and whether `x` surely has a floating type."""

    function: Function
    call: ast.Call
    floating: bool


def copied(unit: Unit, regions: Iterable[Region]) -> Iterator[Copied]:
    """Yield each ``x.cpu()`` of what networks give in some regions, in the type in which they give it.

    What an older interface puts into fp16 itself was fp16 there, too.
    """
    if any(
        s.module.tree.older.written and unit.options[s].level == "O2"
        for s in unit.of(Kind.INITIALIZE)
    ):
        return
    cast: dict[Function, set[ast.AST]] = {}
    for region in regions:
        nodes = cast.setdefault(region.function, set())
        nodes |= {node for stmt in region.statements() for node in ast.walk(stmt)}
    for function, nodes in cast.items():
        outputs = _Outputs(unit, function, nodes)
        for call in function.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu":
                found = outputs.given(call.func.value, frozenset())
                if found:
                    yield Copied(function, call, all(found))


class _Outputs:
    """Follows the expressions of a function to what networks give under autocast."""

    def __init__(self, unit: Unit, function: Function, cast: set[ast.AST]) -> None:
        self._unit = unit
        self._function = function
        self._cast = cast

    def given(self, node: ast.expr, seen: frozenset[ast.AST]) -> list[bool]:
        """Return of each output that an expression may be, of the type of that, whether it is surely a floating one."""
        if node in seen:
            return []
        seen |= {node}
        if isinstance(node, ast.Call):
            return self._called(node, seen)
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr == "data"
        ):
            return self.given(node.value, seen)
        if not isinstance(node, ast.Name):
            return []
        bound = program_of(self._unit.project).training.losses.reaching(self._function, node)
        held = [value for value in bound if isinstance(value, ast.expr)]
        return [each for value in held for each in self.given(value, seen)]

    def _called(self, call: ast.Call, seen: frozenset[ast.AST]) -> list[bool]:
        module = self._function.module
        if self._unit.forwards.is_network(module, call.func):
            return [False] if call in self._cast else []
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _KEEPS_TYPE:
            return []
        name = call.func.attr
        of_torch = self._unit.project.external(module, call.func) == f"torch.{name}"
        values = call.args[:1] if of_torch else [call.func.value]
        found = [each for value in values for each in self.given(value, seen)]
        return [True] * len(found) if name in _FRACTIONS else found
