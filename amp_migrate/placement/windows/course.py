"""What runs between the backward passes and the steps of a function, on its control-flow graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from amp_migrate.facts.paths import all_given
from amp_migrate.flow import Graph, Kind, Order, Point, Way, leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.hidden import Hidden
from amp_migrate.placement.steps.indirect import Indirect, indirect, taken_like
from amp_migrate.placement.windows.surviving import onward, training
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable, upwards
from amp_migrate.project.rounds import graph_of, points_of, runs_before, steadily
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.bindings import generators
from amp_migrate.training.events import Kind as Happens
from amp_migrate.training.origins.switches import feasible
from amp_migrate.training.steppers import makes_schedule
from amp_migrate.training.steps import Backward, Step


class Course:
    """The course of one function, without what is gone. A call that runs a backward elsewhere is one here."""

    def __init__(self, unit: Unit, function: Function) -> None:
        self._unit = unit
        self.function = function
        self._graph: Graph = graph_of(unit.project, function)
        self._order: Order = self._graph.order(exceptions=False)
        self.backwards = unit.live_backwards(function)

    @cached_property
    def indirect(self) -> list[Indirect]:
        """The steps that helpers take for the function, without those of trainings that a call runs from end to end."""
        return [i for i in self._through if not self._is_whole(i.own)]

    @cached_property
    def _through(self) -> list[Indirect]:
        return indirect(self._unit, self.function)

    @cached_property
    def _hidden(self) -> Hidden:
        return Hidden(self._unit, self.function)

    def alike(self, step: Step) -> list[Step]:
        """Return what may step the optimizer of a step: that itself, others of the function, and calls that do."""
        steps = [*self._unit.steps_of(self.function), *(i.seen for i in self.indirect)]
        known = [s for s in steps if s.text == step.text or self._hidden.is_of_one(s, step)]
        return [*known, *self._hidden.of(step, [*steps, *(i.seen for i in self._through)])]

    def given_away(self, step: Step) -> list[Step]:
        """Return the calls by which code out of sight gets the optimizer of a step, as steps of it, which they may be."""
        numbers = program_of(self._unit.project).training.objects.optimizers_of(
            step.module, step.optimizer
        )
        statement = step.tree.statement
        return [
            Step(step.module, step.function, call, call, statement(call), step.text)
            for call in self.function.calls
            if self._gives_away(self.function, call, numbers)
            or any(
                self._gives_away(below, inner, numbers)
                for callee in self._unit.project.callees(call)
                for below in reachable(self._unit.project, callee)
                for inner in below.calls
            )
        ]

    def _gives_away(self, function: Function, call: ast.Call, numbers: Set[int]) -> bool:
        """Tell whether a call hands some optimizer to code out of sight that is not Apex and makes no schedule."""
        project, module = self._unit.project, function.module
        training = program_of(project).training
        kinds = {e.kind for e in training.of(function).get(call, ())}
        if kinds.isdisjoint((Happens.HANDED, Happens.OTHER_STEP)):
            return False
        given = (training.objects.optimizers_of(module, part) for part in all_given(call))
        if not any(numbers & own for own in given) or project.apex(module, call.func) is not None:
            return False
        return not makes_schedule(project.external(module, call.func) or "")

    def _is_whole(self, step: Step) -> bool:
        """Tell whether the function of a step always runs a backward before it, and leaves none without it.

        A generator leaves one where it yields.
        """
        graph = graph_of(self._unit.project, step.function)
        order = graph.order(exceptions=False)
        trains = training(self._unit, step.function, graph)
        taken = taken_like(self._unit, step)
        given = [point for point in graph.points if point.kind is Kind.YIELD]
        if leads(order, trains, given, taken):
            return False
        return not leads(order, [graph.entry], taken, trains) and not leads(
            order, trains, [graph.exit], taken
        )

    @cached_property
    def trains(self) -> list[Point]:
        """The moments at which a backward runs."""
        return training(self._unit, self.function, self._graph)

    def follows(self, later: ast.AST, earlier: ast.AST, between: Iterable[ast.AST] = ()) -> bool:
        """Tell whether a node may run after another one, with nothing of `between` on the way."""
        starts, goals = self._at(earlier)[-1:], self._at(later)[:1]
        return leads(self._order, starts, goals, self._all(between))

    def before(self, first: ast.AST, then: ast.AST, between: Iterable[ast.AST] = ()) -> bool:
        """Tell whether a node may run before another one in its round, with nothing of `between` on the way."""
        return runs_before(self._unit.project, self.function, first, then, between)

    def may_train(
        self, node: ast.AST, between: Iterable[ast.AST], besides: ast.AST | None = None
    ) -> bool:
        """Tell whether a backward may run before a node, here or in a call `besides` one, with nothing of `between` on the way."""
        starts = [point for point in self.trains if point.node is not besides]
        return leads(self._order, starts, self._at(node)[-1:], self._all(between))

    def always_comes(self, node: ast.AST, calls: Iterable[ast.AST]) -> bool:
        """Tell whether one of some calls follows a node whichever way tests go, each of one truth, and before a backward."""
        paths = steadily(self._unit.project, self.function)
        goals = [point for call in calls for point in self._at(call)[-1:]]
        here = self._at(node)[-1:]
        always = all(paths.must_reach(point, goals) for point in here)
        return always and not leads(paths, here, self.trains, goals)

    def begins(self, node: ast.AST, between: Iterable[ast.AST]) -> bool:
        """Tell whether gradients of a caller's backward may be there at a node, with nothing of `between` on the way."""
        running = {backward.function for backward in self._unit.backwards}
        if running.isdisjoint(upwards(self._unit.project, self.function)):
            return False
        return leads(self._order, [self._graph.entry], self._at(node)[-1:], self._all(between))

    def leads_untrained(self, node: ast.AST, later: ast.AST) -> bool:
        """Tell whether something may run after a node with no backward between; loops that train run at least once.

        What a generator lets run between may do so.
        """
        here, there = self._at(node)[-1:], self._at(later)[-1:]
        entered = [
            loop.header
            for loop in self._order.loops
            if not loop.body.intersection(here) and not loop.body.isdisjoint(self.trains)
        ]
        given = [point for point in self._graph.points if point.kind is Kind.YIELD]
        paths = feasible(self._unit.project, self.function)
        return leads(paths, here, there, [*self.trains, *entered, *given])

    def is_read_before(self, node: ast.AST, steps: Sequence[Step]) -> bool:
        """Tell whether gradients are read behind a backward and before a step, or before they are cleared without one."""
        if not steps and not self.backwards:
            return not self._through  # those are trainings that are over with their calls
        if not steps:
            return any(self.before(b.node, node) for b in self.backwards)
        if later := self.next_steps(node, steps):
            return not self.trains or any(self._waits(node, step) for step in later)
        calls = [step.call for step in steps]
        if not self.may_train(node, calls) or not any(self.follows(call, node) for call in calls):
            return False
        paths = steadily(self._unit.project, self.function)
        return leads(paths, self.trains, self._at(node)[-1:], self._all(calls))

    def _waits(self, node: ast.AST, step: Step) -> bool:
        """Tell whether gradients of a backward may be there at a node that the step behind it has not taken in an earlier round.

        A loop around both that trains nothing steps several optimizers in turn.
        """
        here, there = self._at(node)[-1:], self._at(step.call)
        around = [loop for at in here for loop in self._order.loops_of(at)]
        in_turn = any(
            not loop.body.isdisjoint(there) and loop.body.isdisjoint(self.trains) for loop in around
        )
        return self.may_train(node, [] if in_turn else [step.call])

    def next_steps(self, node: ast.AST, steps: Iterable[Step]) -> list[Step]:
        """Return the steps that may follow a node in its round of what trains, no backward or like step between."""
        return [step for step in self.following(node, steps) if self._shares_rounds(node, step)]

    def steps_behind_backwards(
        self, statement: ast.stmt, node: ast.AST, steps: Iterable[Step]
    ) -> list[Step]:
        """Return the steps that take gradients to which a backward adds behind a node, uncleared."""
        found = [step for step in steps if self.follows(step.call, node)]
        return found if found and self.kept(statement, [step.call for step in found]) else []

    def following(self, node: ast.AST, steps: Iterable[Step]) -> list[Step]:
        """Return the steps that may follow a node with no backward or like step between."""
        steps = list(steps)
        alike = {step: [s.call for s in steps if s.text == step.text] for step in steps}
        return [step for step in steps if self._is_next(node, step, alike[step])]

    def kept(self, place: ast.stmt, taking: Iterable[ast.AST]) -> tuple[Point, ...] | None:
        """Return a way on which gradients that are there at a statement get to a backward, past what takes them."""
        here = self._at(place)
        return onward(self._unit, self.function, here[:1], self._all(taking))

    def _is_next(self, node: ast.AST, step: Step, alike: Iterable[ast.AST]) -> bool:
        here, there = self._at(node), self._at(step.call)
        avoided = [point for point in (*self.trains, *self._all(alike)) if point not in there]
        return leads(self._order, here[-1:], there[-1:], avoided)

    def _shares_rounds(self, node: ast.AST, step: Step) -> bool:
        """Tell whether every loop around a node that trains holds the step too."""
        here, there = self._at(node), self._at(step.call)
        return all(
            there[-1] in loop.body
            for loop in self._order.loops_of(here[-1])
            if any(point in loop.body for point in self.trains)
        )

    def backward_before(self, step: Step) -> Backward | None:
        """Return the last backward that may run before a step, with no other one between."""
        nodes = {b: b.node for b in self.backwards}
        found = [
            b
            for b in self.backwards
            if self.follows(step.call, b.node, [n for other, n in nodes.items() if other is not b])
        ]
        return found[-1] if found else None

    def trained_before(self, step: Step) -> ast.AST | None:
        """Return the last backward that may run before a step, with no other one between, or the call that runs it."""
        own = self.backward_before(step)
        if own is not None:
            return own.node
        goal = self._at(step.call)[-1:]
        found = [
            point.node
            for point in self.trains
            if leads(self._order, [point], goal, [p for p in self.trains if p is not point])
        ]
        return found[-1] if found else None

    def _at(self, node: ast.AST) -> tuple[Point, ...]:
        return self._left.get(node) or points_of(self._unit.project, self.function, node)

    @cached_property
    def _left(self) -> dict[ast.AST, tuple[Point, ...]]:
        """When blocks are over whose generators step behind their `yield`, by the calls that make these."""
        return {
            node.context_expr: tuple(
                p for p in self._graph.at(node, Kind.LEAVE) if p.way is not Way.RAISE
            )
            for node in self.function.own_nodes
            if isinstance(node, ast.withitem) and self._steps_behind(node.context_expr)
        }

    def _steps_behind(self, made: ast.expr) -> bool:
        """Tell whether a call makes a generator that steps, and nowhere before its `yield`."""
        found = generators(self._unit.project, made) if isinstance(made, ast.Call) else []
        steps = [step for _, callee in found for step in self._unit.steps_of(callee)]
        return bool(steps) and not any(map(self._is_before_yield, steps))

    def _is_before_yield(self, step: Step) -> bool:
        graph = graph_of(self._unit.project, step.function)
        given = [point for point in graph.points if point.kind is Kind.YIELD]
        order = graph.order(exceptions=False)
        return leads(order, [graph.entry], graph.within(step.call), given)

    def _all(self, nodes: Iterable[ast.AST]) -> list[Point]:
        return [point for node in nodes for point in self._at(node)]
