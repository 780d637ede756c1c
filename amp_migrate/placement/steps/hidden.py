"""Steps that calls take and do not name: of an optimizer in a container, a closure or a global, or in further calls."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.flow import Kind, leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.windows.surviving import training
from amp_migrate.project import Function
from amp_migrate.project.reach import upwards
from amp_migrate.project.rounds import graph_of
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.steps import Step


class Hidden:
    """The steps that calls of a function take, but for those that are gone and those behind a backward of the call's own."""

    def __init__(self, unit: Unit, function: Function) -> None:
        self._unit = unit
        self._objects = program_of(unit.project).training.objects
        self._steps: dict[Function, list[Step]] = {}
        for step in unit.live_steps():
            self._steps.setdefault(step.function, []).append(step)
        self._stepping = upwards(unit.project, *self._steps)
        self.taken = [
            (call, step) for call in self._calls(function) for step in self._of(call, {function})
        ]

    def of(self, step: Step, known: Iterable[Step]) -> list[Step]:
        """Return the calls that may step the optimizer of one, as steps of it, without those that are known."""
        seen = {other.call for other in known}
        calls = dict.fromkeys(
            call
            for call, own in self.taken
            if call not in seen and own.function is not step.function and self._may_be(own, step)
        )
        statement = step.tree.statement
        return [
            Step(step.module, step.function, call, call, statement(call), step.text)
            for call in calls
        ]

    def is_of_one(self, one: Step, other: Step) -> bool:
        """Tell whether two steps are of one optimizer, whatever it is called at each."""
        optimizers = [self._optimizers(step) for step in (one, other)]
        return optimizers[0] == optimizers[1] and len(optimizers[0]) == 1

    def _optimizers(self, step: Step) -> frozenset[int]:
        found = self._objects.optimizers_of(step.module, step.optimizer)
        return frozenset(found - self._objects.of_unknown_origin)

    def _may_be(self, own: Step, step: Step) -> bool:
        one, other = (self._objects.optimizers_of(s.module, s.optimizer) for s in (own, step))
        unclear = self._objects.of_unknown_origin & (one | other)
        return bool(one & other or unclear) or not (one and other)

    def _calls(self, function: Function) -> Iterator[ast.Call]:
        """Yield the calls of a function that may step."""
        for call in function.calls:
            if not self._stepping.isdisjoint(self._unit.project.callees(call)):
                yield call

    def _of(self, call: ast.Call, above: set[Function]) -> Iterator[Step]:
        """Yield the steps that a call may take before a backward of its own."""
        for callee in self._unit.project.callees(call):
            if callee not in self._stepping or callee in above:
                continue
            for step in self._steps.get(callee, ()):
                if self._comes_first(callee, step.call):
                    yield step
            for inner in self._calls(callee):
                if self._comes_first(callee, inner):
                    yield from self._of(inner, above | {callee})

    def _comes_first(self, function: Function, node: ast.Call) -> bool:
        """Tell whether a call may run with no backward of its function before."""
        graph = graph_of(self._unit.project, function)
        here = graph.at(node, Kind.CALL)
        trains = [p for p in training(self._unit, function, graph) if p not in here]
        order = graph.order(exceptions=False)
        return leads(order, [graph.entry], here, trains)
