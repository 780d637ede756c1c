"""Where a scaled loss is read behind the block that scales it."""

from __future__ import annotations

import ast
from collections.abc import Collection

from amp_migrate.facts.below import every
from amp_migrate.flow.cfg.points import Kind
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module


def read_behind(
    unit: Unit, block: ScaleLoss, others: Collection[ScaleLoss]
) -> list[tuple[ast.Name, bool]]:
    """Return the reads outside of a block that its scaled loss may reach, and whether that of another block may too."""
    function = block.site.function
    bound = {b.bound: b for b in others if b.alias == block.alias}
    found: list[tuple[ast.Name, bool]] = []
    inner = set(every(block.node))
    for name in _loads(function, block.alias):
        if name in inner:
            continue
        reaching = _stores(unit, function, name)
        if block.bound in reaching:
            found.append((name, any(node in bound for node in reaching - {block.bound})))
    return found


def _loads(function: Function, alias: str) -> list[ast.Name]:
    """Return the reads of a variable of a function, those of functions inside it included."""
    return function.module.scopes.reads(function.scope, alias)


def _stores(unit: Unit, function: Function, name: ast.Name) -> set[ast.AST]:
    """Return the bindings of a variable that a read of it may find; all of them for a read in another function."""
    module: Module = function.module
    if unit.project.function_of(module, name) is not function:
        return {
            n
            for n in function.own_nodes
            if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Store)
        }
    graph = unit.losses.graph(function)
    return {point.node for point in graph.bound_before(name) if point.kind is Kind.STORE}
