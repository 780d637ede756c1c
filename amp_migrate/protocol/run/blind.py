"""Runs a machine along all ways at once, to tell whether any could break the protocol before they are told apart."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.cfg.points import Edge
from amp_migrate.project import Class, Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.budget import Budget
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.runs import Breached, Sought
from amp_migrate.protocol.run.solve import Run
from amp_migrate.training.events import Event


class Blind(Memory):
    """Remembers nothing of the tests that a path passed, so that it takes every path that another memory takes.

    An event of which a path could know more is all that any path could make of it.
    """

    def __init__(self, other: Memory) -> None:
        self._other = other
        self.course = other.course
        self.visits = other.visits
        self.turns = other.turns
        self.handed = other.handed
        self._numbers = [o.number for o in other._program.training.objects.optimizers]
        self._open: dict[Edge, bool] = {}
        self._known: dict[Event, tuple[Event, ...]] = {}

    def along(self, function: Function, edge: Edge, known: Assumption) -> Assumption | None:
        """Return that nothing is known behind an edge; None where no path can take it."""
        if edge not in self._open:
            self._open[edge] = self._other.along(function, edge, NOTHING) is not None
        return NOTHING if self._open[edge] else None

    def told(
        self, function: Function, test: ast.expr, known: Assumption, truth: bool
    ) -> Assumption | None:
        """Return that nothing is known where a test has come out; None where it never does."""
        return None if self._other.told(function, test, NOTHING, truth) is None else NOTHING

    def taken(
        self, function: Function, loop: ast.AST, known: Assumption, again: bool
    ) -> Assumption:
        """Return that nothing is known where a loop takes an item."""
        return NOTHING

    def exact(self, event: Event, known: Assumption) -> Iterable[Event]:
        """Return an event as whatever a path may know of it."""
        if event not in self._known:
            self._known[event] = tuple(self._possible(event))
        return self._known[event]

    def _possible(self, event: Event) -> Iterator[Event]:
        optimizers, scaled = {event.optimizers}, {event.scaled}
        if len(self._numbers) > 1 and may_tell(event):
            each = (frozenset({number}) for number in self._numbers)
            optimizers |= {frozenset(), frozenset(self._numbers), *each}
        if event.loss is not None and event.scaled is None:
            scaled = {None, True, False}
        return (replace(event, optimizers=o, scaled=s) for o in optimizers for s in scaled)

    def begun(self, function: Function, known: Assumption, apart: int) -> Assumption:
        """Return that a function knows nothing where it begins."""
        return NOTHING

    def into(self, call: ast.Call, callee: Function, known: Assumption) -> Assumption:
        """Return that a function knows nothing of its arguments."""
        return NOTHING

    def back(
        self, call: ast.Call, callee: Function, learnt: Assumption, before: Assumption
    ) -> Assumption:
        """Return that nothing is known behind a call."""
        return NOTHING

    def behind(self, function: Function, known: Assumption) -> Assumption:
        """Return that nothing is known behind a function."""
        return NOTHING

    def of_class(self, receiver: ast.expr, cls: Class, known: Assumption) -> Assumption:
        """Return that the object of a method call may be of any of its classes."""
        return NOTHING


def may_tell(event: Event) -> bool:
    """Tell whether a path may know more of the optimizers of an event than stands in it."""
    if not event.certain and event.optimizers is not None and isinstance(event.named(), ast.Name):
        return True
    if not event.certain and event.network is not None:
        return True
    return event.loss is not None and len(event.optimizers or ()) != 1


def leading_to(anyhow: Run, breached: Collection[Breached]) -> tuple[Span, frozenset[Sought]]:
    """Return from where a run along all ways at once came to some breaches, and what another one looks for that is to show them."""
    span = anyhow.leading_to(b.key.function for b in breached)
    return span, frozenset(b.sought for b in breached)


class Search:
    """Looks for breaches in a program; what it has read of the program is kept for all machines, and so is their budget."""

    def __init__(self, program: Program, memory: Memory, budget: Budget | None = None) -> None:
        self.program = program
        self._budget = budget
        self.memory = memory
        self._blind = Blind(memory)

    def run(self, machine: Machine, span: Span) -> Run:
        """Return a run that shows every breach: one that tells paths apart where not all are right anyway."""
        anyhow = self.anyhow(machine, span)
        breached = anyhow.breached()
        return self.told(anyhow, machine, breached) if breached else anyhow

    def told(self, anyhow: Run, machine: Machine, breached: Collection[Breached]) -> Run:
        """Return a run that tells paths apart, from where one of the machine along all paths at once came to some breaches.

        It ends once it has shown all of them.
        """
        return self.apart(machine, *leading_to(anyhow, breached))

    def apart(self, machine: Machine, span: Span, sought: Collection[Sought] | None = None) -> Run:
        """Return a run that tells all paths apart, and ends once it has shown all breaches that are `sought`, if some are."""
        return Run(self.program, machine, self.memory, span, self._budget, sought)

    def anyhow(self, machine: Machine, span: Span, sought: Collection[Sought] | None = None) -> Run:
        """Return a run along all paths at once, which ends once it has shown all breaches that are `sought`, if some are."""
        return Run(self.program, machine, self._blind, span, self._budget, sought)
