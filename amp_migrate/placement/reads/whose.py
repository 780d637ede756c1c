"""Whose gradients a read reads: the optimizers behind what it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from amp_migrate.facts.paths import defs, same, uses
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.project import Function
from amp_migrate.project.order import inside, levels
from amp_migrate.project.reach import reachable
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.events import Event, Kind
from amp_migrate.training.origins.repeated import visits
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


def goes_to_its_own(unit: Unit, use: Use, step: Step) -> bool:
    """Tell whether a read names an optimizer itself: a loop around it goes to that, or it stands before the loop that steps."""
    stepping, named, tree = step.anchor, use.optimizer, step.tree
    if named is None:
        return False
    if (loop := going_to(tree, use.statement, named)) is not None:
        own = isinstance(named, ast.Name) and visits(unit.project, step.module, loop, named.id)
        return same(loop.iter, stepping.iter) if isinstance(stepping, ast.For) else own
    if not isinstance(stepping, ast.For):
        return False
    own = isinstance(named, ast.Name) and step.module.scopes.owner(named) is step.function.scope
    outside = own and not inside(tree, use.node, stepping)
    return outside and bool(defs(stepping.target) & uses(step.optimizer))


def going_to(tree: Tree, stmt: ast.stmt, named: ast.expr) -> ast.For | None:
    """Return the loop around a statement that binds what an expression names."""
    loops = (up for up in levels(tree, stmt) if up is not stmt and isinstance(up, ast.For))
    return next((loop for loop in loops if defs(loop.target) & uses(named)), None)


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
