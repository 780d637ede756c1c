"""Binary cross entropy on probabilities, which autocast refuses even for fp32 inputs."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.facts.paths import path, walk
from amp_migrate.project import Module
from amp_migrate.unit.forwards import Forward
from amp_migrate.unit.order import position
from amp_migrate.unit.region import Region
from amp_migrate.unit.unit import Unit


@dataclass(frozen=True, eq=False, slots=True)
class Bce:
    """A call of binary cross entropy: its statement stands in a region, or just behind a shortened one."""

    module: Module
    call: ast.Call
    statement: ast.stmt
    inside: bool


def calls(unit: Unit, module: Module, node: ast.AST) -> list[ast.Call]:
    """Return the calls of binary cross entropy in a statement."""
    return [
        n
        for n in walk(node)
        if isinstance(n, ast.Call) and n.args and _is_bce(unit, module, n.func)
    ]


def _is_bce(unit: Unit, module: Module, func: ast.expr) -> bool:
    external = unit.project.external(module, func)
    if external is not None:
        return external == "torch.nn.functional.binary_cross_entropy"
    if path(func) is None:
        return False
    return unit.project.values.made_by(module, func) == ["torch.nn.BCELoss"]


def keep_out(unit: Unit, region: Region) -> tuple[Region | None, list[Bce]]:
    """Return a region that ends before its binary cross entropy, where only the loss follows.

    Where forward passes follow too, the region stays and the call gets a region of its own that is off.
    """
    tree, module = region.module.tree, region.module
    statements = region.statements()
    found = [
        (i, stmt, call) for i, stmt in enumerate(statements) for call in calls(unit, module, stmt)
    ]
    if not found:
        return region, []
    first = found[0][0]
    direct = all(tree.statement(call) is stmt for _, stmt, call in found)
    later = [s for s in statements[first:] if not calls(unit, module, s)]
    alone = all(unit.forwards.strength(module, s) < Forward.CRITERION for s in later)
    combined = any(_forward_beside(unit, module, stmt) for _, stmt, _ in found)
    if not (direct and alone) or combined:
        return region, [Bce(module, call, tree.statement(call), True) for _, _, call in found]
    kept = [Bce(module, call, stmt, False) for _, stmt, call in found]
    if first == 0:
        return None, kept
    last = tree.block(region.first)[position(tree, region.first) + first - 1]
    return Region(module, region.function, region.first, last), kept


def _forward_beside(unit: Unit, module: Module, stmt: ast.stmt) -> bool:
    """Tell whether the statement of a binary cross entropy runs a network as well."""
    return unit.forwards.strength(module, stmt) is Forward.NETWORK
