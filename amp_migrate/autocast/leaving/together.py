"""Outputs that are made fp32 in several places: where they are bound, once, if nothing else is computed of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.forwards.outputs import comes_to_backward
from amp_migrate.training.region import Region, nodes_in


class Target(NamedTuple):
    """An expression of a function that is to become fp32."""

    function: Function
    node: ast.expr


def together(
    unit: Unit, regions: Iterable[Region], targets: Iterable[Target]
) -> Mapping[ast.expr, ast.expr]:
    """Return, of targets that share one output, the call in a block of an evaluation that gives it to the variable."""
    cast, found = nodes_in(regions), dict[ast.expr, list[ast.expr]]()
    for target in targets:
        made = _made(unit, target, cast)
        if made is not None:
            found.setdefault(made, []).append(target.node)
    return {node: made for made, nodes in found.items() if len(nodes) > 1 for node in nodes}


def _made(unit: Unit, target: Target, cast: Set[ast.AST]) -> ast.expr | None:
    """Return the call that a target has its value of, and that nothing in a block computes with."""
    function, losses = target.function, program_of(unit.project).training.losses
    name = root(target.node)
    values = losses.reaching(function, name) if name is not None else []
    made = values[0] if len(values) == 1 else None
    if name is None or not isinstance(made, ast.Call) or made not in cast:
        return None
    up = function.module.tree.parent(made)
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
        return None
    if len(up.targets) > 1 or made in losses.computing:
        return None
    if comes_to_backward(unit.project, losses, made):
        return None
    read = (n for n in function.all_nodes if isinstance(n, ast.Name) and n.id == name.id)
    inside = (n for n in read if isinstance(n.ctx, ast.Load) and n in cast)
    return None if any(made in losses.reaching(function, n) for n in inside) else made


def root(node: ast.expr) -> ast.Name | None:
    """Return the variable of which an expression is a part, or has another shape."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript) or (
            isinstance(node, ast.Attribute) and node.attr == "data"
        ):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in SHAPES:
                return None
            node = node.func.value
        else:
            return None
    return node
