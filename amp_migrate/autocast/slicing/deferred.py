"""Regions whose forward passes run only where what makes them is gone through."""

from __future__ import annotations

import ast
from dataclasses import replace

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project.order import beside, position
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.region import Region


def through(unit: Unit, region: Region) -> Region:
    """Return a region up to where the forward passes are evaluated that its statements leave for later.

    Raises `Cannot` where that is not seen, or lies out of reach of one block.
    """
    tree = region.module.tree
    last = region.last
    deferred = program_of(unit.project).training.losses.deferred
    for call in (node for stmt in region.statements() for node in ast.walk(stmt)):
        if not isinstance(call, ast.Call):
            continue
        if unit.forwards.call(region.module, call) < Forward.CRITERION:
            continue
        places = deferred.evaluated(region.module, call)
        if places == [call]:
            continue
        ends = [_beside(region, place) for place in places or ()]
        if places is None or None in ends:
            raise _out_of_reach(region, call)
        last = max([last, *(end for end in ends if end)], key=lambda s: position(tree, s))
    longer = replace(region, last=last)
    behind = longer.statements()[len(region.statements()) :]
    if any(unit.trains(region.module, stmt) for stmt in behind):
        raise _out_of_reach(region, region.first)
    return longer


def _beside(region: Region, node: ast.AST) -> ast.stmt | None:
    """Return the statement of a region's block, the region's first or a later one, that holds a node."""
    tree = region.module.tree
    held = beside(tree, node, region.first)
    later = held is not None and position(tree, held) >= position(tree, region.first)
    return held if later else None


def _out_of_reach(region: Region, node: ast.AST) -> Cannot:
    return Cannot(
        "AMP904",
        region.module,
        node,
        "this forward pass runs only where the iterator that makes it is gone through, and one autocast block does not "
        "reach from here to there",
        "make a list of it here, then run again",
    )
