"""Which optimizers of GradScalers a program tells apart."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.flow.cfg.graph import Graph
from amp_migrate.flow.cfg.points import EdgeKind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.certain.known import Known
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.events import Event, Kind

_BACK = (EdgeKind.LOOP, EdgeKind.CONTINUE, EdgeKind.EXCEPTION)


class Served(NamedTuple):
    """Optimizers that all events concern together, and their GradScalers.

    `apart`: any path has one of them alone, as where a test chooses between Adam and SGD.
    """

    numbers: frozenset[int]
    scalers: frozenset[int]
    apart: bool


def served(program: Program, known: Known) -> list[Served]:
    """Return the optimizers that GradScalers step or unscale, put together where no event tells them apart."""
    objects = program.training.objects
    told: dict[frozenset[ast.AST], set[int]] = {}
    concerned = _concerned(program)
    for optimizer in objects.optimizers:
        nodes = frozenset(concerned.get(optimizer.number, ()))
        told.setdefault(nodes, set()).add(optimizer.number)
    found = []
    for numbers in told.values():
        scalers = frozenset(
            s.number
            for s in objects.scalers
            if s.optimizers & numbers and known.is_of_torch(s.number)
        )
        if scalers:
            found.append(Served(frozenset(numbers), scalers, _are_alternatives(program, numbers)))
    return found


class Parts:
    """The parts of a program that no call joins, and what lives in each of them."""

    def __init__(self, program: Program, known: Known) -> None:
        self._above: dict[Function, Function] = {}
        for function in program.relevant:
            for site in program.project.callers(function):
                if site.function in program.relevant:
                    self._above[self.of(function)] = self.of(site.function)
        self._optimizers: dict[Function, set[int]] = {}
        for function, events in program.training.by_function.items():
            held = self._optimizers.setdefault(self.of(function), set())
            for node, found in events.items():
                held.update(*(_named(program, function, node, event) for event in found))
        self._strange = {
            self.of(program.project.function_of(module, call)) for module, call in known.strangers
        }

    def of(self, function: Function) -> Function:
        """Return the function that stands for the part of one."""
        while function in self._above and self._above[function] is not function:
            function = self._above[function]
        return function

    def lives_in(self, numbers: frozenset[int], function: Function) -> bool:
        """Tell whether one of some optimizers is in the part of a function."""
        return bool(self._optimizers.get(self.of(function), set()) & numbers)

    def alone(self, numbers: frozenset[int], among: frozenset[int]) -> bool:
        """Tell whether no part has one of some optimizers beside another of `among`."""
        return all(held & among <= numbers for held in self._optimizers.values() if held & numbers)

    def strange(self, numbers: frozenset[int]) -> bool:
        """Tell whether some part has one of some optimizers beside what may be one that nothing is known of."""
        return any(
            part in self._strange for part, held in self._optimizers.items() if held & numbers
        )


def _concerned(program: Program) -> dict[int, set[ast.AST]]:
    """Return the nodes whose events concern an optimizer by its number, those that make it apart."""
    found: dict[int, set[ast.AST]] = {}
    for function, events in program.training.by_function.items():
        for node, held in events.items():
            for event in held:
                if event.kind is not Kind.MAKE:
                    for number in _named(program, function, node, event):
                        found.setdefault(number, set()).add(node)
    return found


def _named(program: Program, function: Function, node: ast.AST, event: Event) -> frozenset[int]:
    """Return the optimizers that an event is about, without those of unknown origin that are cleared if it is one of them."""
    if event.kind is Kind.ZERO_GRAD and isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            objects = program.training.objects
            named = objects.optimizers_of(function.module, node.func.value)
            if named:
                return named
    return event.optimizers or frozenset()


def _are_alternatives(program: Program, numbers: set[int]) -> bool:
    made = list(_making(program, numbers))
    if len(made) < 2:
        return len(numbers) == 1
    if len({id(graph) for graph, _ in made}) > 1:
        return False
    graph = made[0][0]
    return not any(
        _leads(graph, one, other) for _, one in made for _, other in made if one is not other
    )


def _making(program: Program, numbers: set[int]) -> Iterator[tuple[Graph, Point]]:
    for function, events in program.training.by_function.items():
        for node, held in events.items():
            for event in held:
                if event.kind is Kind.MAKE and event.optimizers and event.optimizers & numbers:
                    graph = program.graph(function)
                    yield from ((graph, point) for point in graph.at(node)[:1])


def _leads(graph: Graph, one: Point, other: Point) -> bool:
    """Tell whether one point may come before another in the same turn of the loops around them."""
    seen = {one}
    queue = [one]
    while queue:
        for edge in graph.successors(queue.pop()):
            if edge.kind not in _BACK and edge.target not in seen:
                if edge.target is other:
                    return True
                seen.add(edge.target)
                queue.append(edge.target)
    return False
