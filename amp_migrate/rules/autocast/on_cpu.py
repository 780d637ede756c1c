"""Outputs of networks that ``.cpu()`` copies: O1 made those fp32, autocast leaves them fp16."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.apex.sites import Kind
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.region import Region

_KEEPS_TYPE = SHAPES | {"clone", "cuda", "relu", "sigmoid", "tanh"}


def copied(unit: Unit, regions: Iterable[Region]) -> Iterator[tuple[Function, ast.Call]]:
    """Yield the first ``x.cpu()`` of each function of what networks give in some regions, as they give it.

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
        calls = function.calls
        for call in calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == "cpu":
                if _is_output(unit, function, nodes, call.func.value, set()):
                    yield function, call
                    break


def _is_output(
    unit: Unit, function: Function, cast: set[ast.AST], node: ast.expr, seen: set[ast.AST]
) -> bool:
    """Tell whether an expression is what a network gives, of the type that it gives it in."""
    if node in seen:
        return False
    seen.add(node)
    if isinstance(node, ast.Call):
        if unit.forwards.is_network(function.module, node.func):
            return node in cast
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr not in _KEEPS_TYPE:
            return False
        return _is_output(unit, function, cast, method.value, seen)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _is_output(unit, function, cast, node.value, seen)
    if isinstance(node, ast.Subscript):
        return _is_output(unit, function, cast, node.value, seen)
    if not isinstance(node, ast.Name):
        return False
    bound = program_of(unit.project).training.losses.reaching(function, node)
    held = [value for value in bound if isinstance(value, ast.expr)]
    return any(_is_output(unit, function, cast, value, seen) for value in held)
