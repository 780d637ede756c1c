"""Evaluation forwards that one autocast holds: those of the arms of a test, and with nothing but shaping in between."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.autocast.evaluated.inference import without_gradients
from amp_migrate.facts.paths import walk
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.training.beliefs import METHODS_WITHOUT_CASTS
from amp_migrate.training.contexts import runs_without_gradients
from amp_migrate.training.region import Region

_TRANSFERS = frozenset({"append", "cpu", "cuda", "extend", "numpy", "pop", "to", "tolist"})
_SHAPING = frozenset(n for n in METHODS_WITHOUT_CASTS - _TRANSFERS if not n.endswith("_")) - {
    "item"
}
_ASKS = frozenset({"hasattr", "isinstance", "len"})


def gathered(unit: Unit, regions: Iterable[Region]) -> list[Region]:
    """Return the regions that hold more than one of some of a function, all cast under one condition."""
    regions = list(regions)
    covered = {stmt: region for region in regions for stmt in region.statements()}
    held = _Held(unit, covered)
    blocks = {id(block): (block, region) for region in regions for block in [held.block(region)]}
    return [
        Region(region.module, region.function, run[0], run[-1])
        for block, region in blocks.values()
        for run in held.runs(region, block)
        if len(set(held.within(run))) > 1
    ]


class _Held:
    """Knows which statements may stand under one autocast, as regions hold them or they only shape results."""

    def __init__(self, unit: Unit, covered: dict[ast.stmt, Region]) -> None:
        self._unit = unit
        self._covered = covered

    def block(self, region: Region) -> list[ast.stmt]:
        """Return the outermost block in which a region, or the statements around it, stand under one autocast."""
        tree, stmt = region.module.tree, region.first
        while isinstance(up := tree.holder(stmt), ast.If | ast.With) and self._holds(region, up):
            stmt = up
        return tree.block(stmt)

    def runs(self, region: Region, block: list[ast.stmt]) -> list[list[ast.stmt]]:
        """Return the runs of statements of a block that begin and end with what regions hold."""
        found: list[list[ast.stmt]] = [[]]
        waiting: list[ast.stmt] = []
        for stmt in block:
            if self._holds(region, stmt):
                found[-1] += [*waiting, stmt] if found[-1] else [stmt]
                waiting = []
            elif _shapes(stmt):
                waiting.append(stmt)
            else:
                found.append([])
                waiting = []
        return [run for run in found if run]

    def within(self, run: Iterable[ast.stmt]) -> list[Region]:
        """Return the regions that some statements hold."""
        parts = (node for stmt in run for node in walk(stmt))
        return [self._covered[node] for node in parts if node in self._covered]

    def _holds(self, region: Region, stmt: ast.stmt) -> bool:
        if stmt in self._covered:
            return True
        if isinstance(stmt, ast.If):
            parts = [*stmt.body, *stmt.orelse]
            if not _is_quiet(stmt.test):
                return False
        elif isinstance(stmt, ast.With) and self._adds_nothing(region, stmt):
            parts = stmt.body
        else:
            return False
        holds = [self._holds(region, part) for part in parts]
        return any(holds) and all(h or _shapes(p) for h, p in zip(holds, parts, strict=True))

    def _adds_nothing(self, region: Region, stmt: ast.With) -> bool:
        """Tell whether a statement leaves out gradients where there are none."""
        return bool(
            runs_without_gradients(self._unit.project, region.module, stmt)
        ) and without_gradients(self._unit, region.module, stmt)


def _shapes(stmt: ast.stmt) -> bool:
    """Tell whether a statement only shapes or selects results: no transfer, and nothing for a log."""
    if isinstance(stmt, ast.If):
        return _is_quiet(stmt.test) and all(map(_shapes, [*stmt.body, *stmt.orelse]))
    if isinstance(stmt, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return _is_quiet(stmt)
    return isinstance(stmt, ast.Pass)


def _is_quiet(node: ast.AST) -> bool:
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(
        func.attr in _SHAPING
        if isinstance(func, ast.Attribute)
        else getattr(func, "id", "") in _ASKS
        for func in calls
    )
