"""What Apex made fp32 and autocast leaves in fp16: an fp16 tensor times an fp32 one without dimensions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.autocast.disabled import Disabled
from amp_migrate.autocast.spared.statements import Spared, nodes_of
from amp_migrate.facts.paths import tail
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import key
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.region import Part
from amp_migrate.training.types.floats import Helds, Kind
from amp_migrate.training.types.known import Types, types_of
from amp_migrate.training.types.operators import MAKES, is_fraction

_WIDENING = (ast.Add, ast.Div, ast.Mult, ast.Sub)


@once
def has_bare(project: Project) -> bool:
    """Tell whether a project makes a tensor without dimensions anywhere: ``torch.tensor(10.0)``, ``torch.ones([])``."""
    calls = (call for _, call in project.nodes(ast.Call) if call.args)
    return any(
        is_fraction(call.args[0])
        if tail(call) == "tensor"
        else tail(call) in MAKES and _is_empty(call.args[0])
        for call in calls
    )


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List) and not node.elts


def widened_by_o1(unit: Unit, parts: Iterable[Part], disabled: Disabled) -> list[Spared]:
    """Return what some parts compute of surely fp16 and of an fp32 tensor that surely has no dimensions, by place."""
    found = dict.fromkeys(_found(unit, parts, disabled))
    return sorted(found, key=lambda each: (each.function.module.path, key(each.node)))


def _found(unit: Unit, parts: Iterable[Part], disabled: Disabled) -> Iterator[Spared]:
    types = types_of(unit.project, program_of(unit.project).training.losses)
    for function, node in dict.fromkeys(nodes_of(unit.project, list(parts))):
        if isinstance(node, ast.BinOp) and isinstance(node.op, _WIDENING):
            if _widens(types, function, node) and not disabled.runs(function):
                yield Spared(function, function.module.tree.statement(node), node)


def _widens(types: Types, function: Function, node: ast.BinOp) -> bool:
    sides = [types.of(function, side) for side in (node.left, node.right)]
    return any(_is_half(one) and _is_bare(other) for one, other in (sides, sides[::-1]))


def _is_half(found: Helds) -> bool:
    return {(held.apex, held.native) for held in found} == {(Kind.HALF, Kind.HALF)}


def _is_bare(found: Helds) -> bool:
    return all(held.bare and held.apex is held.native is Kind.WIDE for held in found)
