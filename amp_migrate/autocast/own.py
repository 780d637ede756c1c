"""Autocast blocks that the source has itself around what Apex cast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.autocast.adopted import adopted
from amp_migrate.autocast.products import Products
from amp_migrate.facts.paths import walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.training.beliefs import AUTOCASTS
from amp_migrate.training.forwards.forwards import Forward


class OwnBlock(NamedTuple):
    """A `with` of the source that enters autocast by a call; `training`: it computes a loss that trains."""

    function: Function
    block: ast.With
    call: ast.Call
    training: bool


def own_blocks(unit: Unit) -> Iterator[OwnBlock]:
    """Yield the blocks of the source that hold what Apex cast to fp16: networks, layers or products.

    Those whose losses train without Apex are no blocks of the unit.
    """
    products = Products(unit.project)
    around = {
        adopted(unit.project, backward.function, backward.loss, backward.node)
        for backward in unit.live_backwards()
    }
    for module in unit.near:
        for block in module.tree.nodes(ast.With):
            calls = [i.context_expr for i in block.items if isinstance(i.context_expr, ast.Call)]
            own = [c for c in calls if unit.project.external(module, c.func) in AUTOCASTS]
            if not own:
                continue
            function, trains = unit.project.function_of(module, block), _trains(unit, block)
            if block in around or (trains is not False and _casts(unit, products, module, block)):
                trained = block in around or (trains is True and function in unit.training)
                yield OwnBlock(function, block, own[-1], trained)


def _casts(unit: Unit, products: Products, module: Module, block: ast.With) -> bool:
    return any(
        any(True for _ in products.factors(module, stmt))
        or any(
            isinstance(node, ast.Call) and unit.forwards.call(module, node) is Forward.NETWORK
            for node in walk(stmt)
        )
        for stmt in block.body
    )


def _trains(unit: Unit, block: ast.With) -> bool | None:
    """Tell whether a block computes losses of backward passes that Apex scaled; False where others did, None for none."""
    inside = {node for stmt in block.body for node in walk(stmt)} & unit.losses.computing
    if not inside:
        return None
    return any(
        unit.losses.computes(backward.function, backward.loss, node)
        for backward in unit.backwards
        for node in inside
    )
