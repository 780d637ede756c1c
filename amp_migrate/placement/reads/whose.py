"""Whose gradients a read reads: the optimizers behind what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.steps import Step


def of_one(unit: Unit, function: Function, read: ast.expr, steps: Iterable[Step]) -> list[Step]:
    """Return those of some steps that step the one optimizer whose gradients a read reads, where it is known."""
    objects = program_of(unit.project).training.objects
    read_of = set(_read_of(unit, function, read))
    if len(read_of) != 1 or None in read_of:
        return []
    (numbers,) = read_of
    module = function.module
    return [s for s in steps if numbers and numbers == objects.optimizers_of(module, s.optimizer)]


def _read_of(unit: Unit, function: Function, read: ast.expr) -> Iterator[frozenset[int] | None]:
    """Yield for each read of gradients that a node is or runs the optimizers that it concerns; None where any may be."""
    training = program_of(unit.project).training
    yield from (e.optimizers for e in _reads(training.of(function).get(read, ())))
    for callee in unit.project.callees(read) if isinstance(read, ast.Call) else ():
        given = unit.project.given(read, callee) if isinstance(read, ast.Call) else {}
        for held in training.of(callee).values():
            for event in _reads(held):
                handed = given.get(event.network) if event.network is not None else None
                if handed is None:
                    yield event.optimizers if event.certain else None
                else:
                    objects, module = training.objects, function.module
                    yield objects.training(objects.groups(module, handed))
        for further in reachable(unit.project, callee) - {callee}:
            events = training.of(further)
            if any(True for held in events.values() for _ in _reads(held)):
                yield None


def _reads(events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.kind is Kind.READ_GRAD)
