"""Whether a place may run once AMP is initialized, and before the first backward pass that scales its loss."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import calls_to, reached_by
from amp_migrate.project.rounds import may_follow, may_start


class First:
    """Answers for the places of a unit."""

    def __init__(self, unit: Unit) -> None:
        self._project: Project = unit.project
        self._coming = unit.beginning
        self._scaled = [(b.function, b.node) for b in unit.backwards if b.scaled]

    def may_precede(self, function: Function, node: ast.AST) -> bool:
        """Tell whether a node may run before any loss is scaled; also where nothing is known to lead to it."""
        coming = self._coming.nodes
        if function not in coming and not self._project.callers(function):
            return True
        return any(
            may_follow(self._project, there, first, target, self._passed(there, target))
            and self._begins(function, node, target, frozenset())
            for there, leading in coming.items()
            for first in leading
            for target in self._targets(there, function, node)
        )

    def _begins(
        self, function: Function, node: ast.AST, target: ast.AST, seen: frozenset[Function]
    ) -> bool:
        """Tell whether what a target runs may come to the node before a loss is scaled."""
        if target is node:
            return True
        callees = self._project.callees(target) if isinstance(target, ast.Call) else []
        return any(
            may_start(self._project, callee, below, self._passed(callee, below))
            and self._begins(function, node, below, seen | {callee})
            for callee in callees
            if callee not in seen
            for below in self._targets(callee, function, node)
        )

    def _targets(self, there: Function, function: Function, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the node, or the calls of a function that may come to it."""
        yield from [node] if there is function else calls_to(self._project, there, {function})

    def _passed(self, there: Function, target: ast.AST) -> list[ast.AST]:
        """Return what scales a loss in a function, but for a call that comes to the target itself."""
        return [
            node
            for node in there.own_nodes
            if node is not target
            and (
                any(there is f and node is scaled for f, scaled in self._scaled)
                or any(f in reached_by(self._project, node) for f, _ in self._scaled)
            )
        ]
