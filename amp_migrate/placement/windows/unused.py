"""Backward passes whose gradients no step takes: what clears them comes first on every way, as behind an attack."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.flow import Graph, Kind, Point, leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing, clears
from amp_migrate.placement.windows.surviving import ending
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside
from amp_migrate.project.reach import calls_to
from amp_migrate.project.rounds import graph_of, points_of
from amp_migrate.training.origins.switches import feasible
from amp_migrate.training.steps import Backward, is_one

Place = tuple[Module, ast.AST]


def unused(unit: Unit, moved: Iterable[ast.stmt] = ()) -> Iterator[Place]:
    """Yield the scaled backward passes whose gradients are cleared before any step; of a shared helper, the call of it.

    What clears in a statement of `moved` does not, as that will stand behind the step.
    """
    if unit.plain or not unit.steps:
        return
    for backward in unit.live_backwards():
        if backward.scaled:
            uses = _Uses(unit, set(_clears_others(unit, backward)), set(moved))
            end = points_of(unit.project, backward.function, backward.node)[-1:]
            yield from uses.lost(backward.function, end, (backward.module, backward.node))


def _clears_others(unit: Unit, backward: Backward) -> Iterator[ast.Call]:
    """Yield the ``zero_grad()`` of the optimizers that step beside a backward and are not fed by it."""
    module, function = backward.module, backward.function
    for node in function.calls:
        if clears(node) and isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            own = any(is_one(unit.project, module, o, receiver) for o in backward.optimizers)
            steps = unit.steps_of(function)
            if not own and any(is_one(unit.project, module, s.optimizer, receiver) for s in steps):
                yield node


class _Uses:
    """Follows gradients from some points to the steps that may take them."""

    def __init__(self, unit: Unit, others: set[ast.AST], moved: set[ast.stmt]) -> None:
        self._unit = unit
        self._gone = unit.gone | others
        self._moved = moved
        self._stepping = {step.function for step in unit.steps}
        self._begun: dict[Function, bool] = {}

    def lost(
        self,
        function: Function,
        starts: Iterable[Point],
        place: Place,
        seen: frozenset[Function] = frozenset(),
    ) -> Iterator[Place]:
        """Yield from where gradients that are there at some points come that are cleared before any step; `place`: this one."""
        graph = graph_of(self._unit.project, function)
        paths = feasible(self._unit.project, function)
        cleared, starts = self._cleared(function), list(starts)
        if self._gets_to_step(function, graph, starts):
            return
        if function.node is None or not leads(paths, starts, [graph.exit], cleared):
            if leads(paths, starts, cleared):
                yield place
            return
        callers = self._unit.project.callers(function)
        for call in callers:
            if call.function not in seen | {function}:
                at = place if len(callers) == 1 else (call.function.module, call.call)
                points = ending(self._unit.project, call, function)
                yield from self.lost(call.function, points, at, seen | {function})

    def _gets_to_step(self, function: Function, graph: Graph, starts: Iterable[Point]) -> bool:
        paths, kept = feasible(self._unit.project, function), set(self._cleared(function))
        goals = list(self._steps(function, graph))
        return any(leads(paths, starts, [goal], kept - {goal}) for goal in goals)

    def _steps(self, function: Function, graph: Graph) -> Iterator[Point]:
        """Yield the moments at which a function may step on gradients that it found."""
        for step in self._unit.steps_of(function):
            yield from graph.within(step.call)
        for node in calls_to(self._unit.project, function, self._stepping):
            if any(map(self._steps_first, self._unit.project.callees(node))):
                yield from graph.at(node, Kind.CALL)

    def _steps_first(self, function: Function) -> bool:
        """Tell whether a function may step on the gradients that it finds when it is called."""
        if function not in self._begun:
            self._begun[function] = False
            graph = graph_of(self._unit.project, function)
            self._begun[function] = self._gets_to_step(function, graph, [graph.entry])
        return self._begun[function]

    def _cleared(self, function: Function) -> list[Point]:
        """Return the moments at which the gradients of networks are clear, in a function."""
        known, tree = clearing(self._unit.project), function.module.tree
        stepping = [step.call for step in self._unit.steps_of(function)]
        found: list[ast.AST] = []
        for node in known.of_parameters(function):
            if node not in self._gone and tree.statement(node) not in self._moved:
                steps_too = any(inside(tree, call, node) for call in stepping)
                found += filter(clears, ast.walk(node)) if steps_too else [node]
        return known.moments(function, found)
