"""Where gradients go: to the steps that may take them, or past those to what clears them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from amp_migrate.flow import NOTHING, Assumption, Graph, Kind, Paths, Point, leads
from amp_migrate.flow.cfg.subject import Fork, evaluated, is_fork, question, ways
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing, clears
from amp_migrate.placement.windows.raised import raising
from amp_migrate.placement.windows.same_object import on_same_object
from amp_migrate.placement.windows.surviving import ending, leaves_out, training
from amp_migrate.project import CallSite, Function, Module
from amp_migrate.project.order import in_branch, inside, levels
from amp_migrate.project.reach import calls_to
from amp_migrate.project.rounds import graph_of
from amp_migrate.training.flags.counted import remainders
from amp_migrate.training.origins.switches import entered, feasible
from amp_migrate.training.steps import Step

Place = tuple[Module, ast.AST]


class Uses:
    """Follows gradients from some points to the steps that may take them: `steps`, or all of the unit.

    What is in `others` clears those of other optimizers, what is in `moved` will clear them later.
    """

    def __init__(
        self,
        unit: Unit,
        others: set[ast.AST],
        moved: set[ast.stmt],
        steps: Sequence[Step] | None = None,
    ) -> None:
        self._unit = unit
        self._every = unit.steps if steps is None else steps
        self._gone = unit.gone | others
        self._moved = moved
        self._stepping = {step.function for step in self._every}
        self._begun: dict[Function, bool] = {}
        self._later: dict[ast.AST, bool] = {}
        self._sure: dict[Function, bool] = {}
        self._clearing: dict[Function, bool] = {}
        self._ways: dict[tuple[Function, Assumption], Paths] = {}

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

    def passes(
        self,
        function: Function,
        starts: Iterable[Point],
        seen: frozenset[Function] = frozenset(),
        taken: bool = False,
        known: Assumption = NOTHING,
    ) -> Function | None:
        """Return where gradients that are there at some points may be cleared past a step that some way takes.

        `taken`: a function that was left by then may take them. `known` is what holds of its object all along.
        """
        graph = graph_of(self._unit.project, function)
        paths, stepping = self._followed(function, known), [*self._surely(function, graph)]
        cleared = [*self._cleared(function), *self._cleared_below(function, graph)]
        starts = list(starts)
        starts += [
            begin
            for test, begin in self._due(function, graph)
            if leads(paths, starts, test, [*cleared, *stepping])
        ]
        taken = taken or self._gets_to_step(function, graph, starts)
        starts += self._thrown(function, graph, starts, cleared)
        if leads(paths, starts, cleared, stepping):
            return function if taken else None
        kept, around = [*cleared, *stepping], seen | {function}
        returns, raises = (leads(paths, starts, [end], kept) for end in (graph.exit, graph.raised))
        found = (
            self.passes(
                c.function,
                self._behind(c, function, returns, raises),
                around,
                taken,
                known if on_same_object(c, function) else NOTHING,
            )
            for c in (self._unit.project.callers(function) if returns or raises else ())
            if c.function not in around and not leaves_out(self._unit, c.call)
        )
        return next((where for where in found if where is not None), None)

    def _steps_of(self, function: Function) -> list[Step]:
        return [step for step in self._every if step.function is function]

    def _thrown(
        self, function: Function, graph: Graph, starts: list[Point], cleared: list[Point]
    ) -> Iterator[Point]:
        """Yield where a function goes on with what a call throws that gradients get to, before it steps on them."""
        project, paths = self._unit.project, self._followed(function)
        for call in calls_to(project, function, self._stepping):
            own = graph.within(call)
            others = [p for p in self._surely(function, graph) if p not in own]
            if not leads(paths, starts, graph.at(call, Kind.CALL), [*cleared, *others]):
                continue
            for callee in project.callees(call):
                inner, site = graph_of(project, callee), project.site(call, callee)
                kept = [*self._cleared(callee), *self._surely(callee, inner)]
                ends = [inner.raised]
                if site and leads(self._followed(callee), [inner.entry], ends, kept):
                    yield from raising(project).goes_on(site, callee)

    def _behind(
        self, site: CallSite, callee: Function, returns: bool, raises: bool
    ) -> Iterator[Point]:
        """Yield where the function of a call goes on once that returns, or raises what is caught there."""
        if returns:
            yield from ending(self._unit.project, site, callee)
        if raises:
            yield from raising(self._unit.project).goes_on(site, callee)

    def _followed(self, function: Function, known: Assumption = NOTHING) -> Paths:
        """Return the ways through a function on which no call changes what a test reads, where something is known of its object."""
        if (function, known) not in self._ways:
            project = self._unit.project
            graph, held = raising(project).graph(function), entered(project, function)
            for fact in known.facts:
                held = held.with_fact(fact.term, fact.value)
            paths = Paths(graph, held, changes=lambda *_: False, exceptions=False)
            self._ways[function, known] = paths
        return self._ways[function, known]

    def _due(self, function: Function, graph: Graph) -> Iterator[tuple[Sequence[Point], Point]]:
        """Yield where the branches with a step begin whose test, before that, lets it wait for several micro-batches."""
        for step in self._steps_of(function):
            tree = function.module.tree
            for up in filter(is_fork, levels(tree, step.call)):
                branches = (b for b in ways(up) if in_branch(tree, step.call, b))
                if (branch := next(branches, None)) and self._counts(function, question(up)):
                    asked = graph.within(evaluated(up))
                    yield from ((asked, p) for p in graph.within(branch[0])[:1])

    def _counts(self, function: Function, test: ast.expr) -> bool:
        return any(remainders(self._unit.project, self._unit.losses.reached, function, test))

    def _cleared_below(self, function: Function, graph: Graph) -> Iterator[Point]:
        """Yield the calls of a function that may clear gradients before they step or add to them."""
        for call in function.calls:
            if function.module.tree.statement(call) in self._moved:
                continue
            if any(map(self._clears_first, self._unit.project.callees(call))):
                yield from graph.at(call, Kind.CALL)

    def _clears_first(self, function: Function) -> bool:
        """Tell whether a function may clear gradients before it steps or adds to them."""
        if function not in self._clearing:
            self._clearing[function] = False
            graph = graph_of(self._unit.project, function)
            cleared = [*self._cleared(function), *self._cleared_below(function, graph)]
            kept = [*self._surely(function, graph), *training(self._unit, function, graph)]
            paths = self._followed(function)
            found = bool(cleared) and leads(paths, [graph.entry], cleared, kept)
            self._clearing[function] = found
        return self._clearing[function]

    def _surely(self, function: Function, graph: Graph) -> Iterator[Point]:
        """Yield the moments at which a function steps, on each way there, or asks whether it has waited long enough."""
        steps = self._steps_of(function)
        for step in steps:
            yield from self._visits(function, graph, step)
        calls = calls_to(self._unit.project, function, self._stepping)
        for node in (*(step.call for step in steps), *calls):
            callees = self._unit.project.callees(node) if node in calls else ()
            if len(callees) != 1 or self._takes(callees[0]):
                yield from graph.within(node)
            tree = function.module.tree
            around = (up.test for up, _ in tree.sides(node) if isinstance(up, ast.IfExp))
            for test in around:
                if self._counts(function, test):
                    yield from graph.within(test)
            forks = (fork for fork in levels(tree, node) if is_fork(fork))
            outer = (fork for fork in forks if not inside(tree, node, evaluated(fork)))
            for fork in (*outer, *_leaving(function)):
                if self._counts(function, question(fork)):
                    yield from graph.within(evaluated(fork))

    def _takes(self, function: Function) -> bool:
        """Tell whether a function steps on the gradients that it finds, on every way."""
        return self._always_steps(function) and not self._clears_first(function)

    def _visits(self, function: Function, graph: Graph, step: Step) -> Iterator[Point]:
        """Yield where the loops begin that only go over optimizers or what steps them: there is one at least."""
        running = {b.function for b in self._unit.backwards}
        trained = [b.node for b in self._unit.backwards_of(function)]
        trained += calls_to(self._unit.project, function, running)
        for up in function.module.tree.ancestors(step.call):
            if isinstance(up, ast.For) and not any(
                inside(function.module.tree, n, up) for n in trained
            ):
                yield from graph.at(up, Kind.NEXT)

    def _always_steps(self, function: Function) -> bool:
        """Tell whether every way through a function steps, or is one that waits."""
        if function not in self._sure:
            self._sure[function] = True
            graph = graph_of(self._unit.project, function)
            past = self._followed(function), [graph.entry], [graph.exit]
            self._sure[function] = not leads(*past, list(self._surely(function, graph)))
        return self._sure[function]

    def _gets_to_step(self, function: Function, graph: Graph, starts: Iterable[Point]) -> bool:
        paths, kept = feasible(self._unit.project, function), set(self._cleared(function))
        goals = list(self._steps(function, graph))
        return any(leads(paths, starts, [goal], kept - {goal}) for goal in goals)

    def _steps(self, function: Function, graph: Graph) -> Iterator[Point]:
        """Yield the moments at which a function may step on gradients that it found."""
        for step in self._steps_of(function):
            yield from graph.within(step.call)
        for node in self._taking(function):
            yield from graph.at(node, Kind.CALL)

    def _steps_first(self, function: Function) -> bool:
        """Tell whether a function may step on the gradients that it finds when it is called."""
        if function not in self._begun:
            self._begun[function] = False
            graph = graph_of(self._unit.project, function)
            self._begun[function] = self._gets_to_step(function, graph, [graph.entry])
        return self._begun[function]

    def _clears_moved(self, node: ast.AST) -> bool:
        """Tell whether all that a call clears by what it runs is moved."""
        callees = self._unit.project.callees(node) if isinstance(node, ast.Call) else []
        if not callees or clears(node):
            return False
        if node not in self._later:
            self._later[node] = False
            self._later[node] = not any(map(self._cleared, callees))
        return self._later[node]

    def _cleared(self, function: Function) -> list[Point]:
        """Return the moments at which the gradients of networks are clear, in a function."""
        known, tree = clearing(self._unit.project), function.module.tree
        stepping = [step.call for step in self._steps_of(function)]
        found: list[ast.AST] = []
        for node in known.of_parameters(function):
            if node not in self._gone and tree.statement(node) not in self._moved:
                if self._moved and self._clears_moved(node):
                    continue
                steps_too = any(inside(tree, call, node) for call in stepping)
                found += filter(clears, ast.walk(node)) if steps_too else [node]
        taking = self._taking(function)
        behind = [
            point
            for node in found
            if node in taking
            for point in graph_of(self._unit.project, function).at(node, Kind.CALL)
        ]
        return [*behind, *known.moments(function, (n for n in found if n not in taking))]

    def _taking(self, function: Function) -> set[ast.Call]:
        """Return the calls of a function that may step on the gradients they find: what they clear, they clear behind that."""
        calls, callees = (
            calls_to(self._unit.project, function, self._stepping),
            self._unit.project.callees,
        )
        return {call for call in calls if any(map(self._steps_first, callees(call)))}


def _leaving(function: Function) -> Iterator[Fork]:
    """Yield the forks of a function behind which a branch leaves its loop or round, or the function."""
    for node in function.own_nodes:
        if is_fork(node):
            ends = (block[-1] for block in ways(node) if block)
            if any(isinstance(end, ast.Continue | ast.Break | ast.Return) for end in ends):
                yield node
