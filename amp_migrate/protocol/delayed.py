"""Gradients that `delay_unscale` leaves to a block of Apex which does not come before the step."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.left_scaled import CLEARING, Named, backwards, of_block
from amp_migrate.protocol.machine import Moved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.contexts import Context, around
from amp_migrate.training.events import Event, Kind

_DELAYING = (Context.DELAYS, Context.DIVIDES)


@dataclass(frozen=True)
class DelayMachine:
    """Follows whether a block with `delay_unscale` has left the gradients of an optimizer, by its number, scaled.

    A state is a pair: whether they are, and whether a block around leaves them, None where no block tells.
    """

    number: int
    named: Named

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return ((False, None),)

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state as it was before what raised an exception."""
        return state

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""
        assert isinstance(state, tuple)
        return (state[0], context is Context.DELAYS) if context in _DELAYING else state

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context."""
        assert isinstance(state, tuple)
        return (state[0], None) if context in _DELAYING else state

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, tuple)
        left, delays = state
        own = event.optimizers is None or self.number in event.optimizers
        if event.kind is Kind.BACKWARD and delays is not None and own:
            return Moved(((delays, delays),))
        if event.kind is Kind.BACKWARD and self.number in self.named.get(event.node, ()):
            return Moved(((False, delays),))
        if event.kind in CLEARING and own:
            return Moved(((False, delays),))
        stepped = event.kind is Kind.STEP and own and left and (visited or event.certain)
        return Moved((state,), (Breach.SCALED_STEP,) if stepped else ())


class Delayed(NamedTuple):
    """A step on gradients that a block with `delay_unscale` left scaled, on some path."""

    function: Function
    step: ast.Call
    optimizer: int


@once
def delayed(program: Program) -> tuple[Delayed, ...]:
    """Return where Apex steps on gradients that `delay_unscale` left to a block which does not come before the step."""
    named: dict[ast.AST, frozenset[int]] = {}
    waiting: set[int] = set()
    for function, event in backwards(program):
        assert isinstance(event.node, ast.Call)
        named[event.node] = of_block(program, function, event.node)
        if any(_delays(program, function, call) for call in around(function.module, event.node)):
            waiting |= named[event.node]
    part = program.of_gradients
    search, programs = Search(part, CertainMemory(part)), Programs(part)
    found: dict[Delayed, None] = {}
    for number in sorted(waiting):
        run = search.run(DelayMachine(number, named), programs.of_optimizers([number]))
        for _, key, here, _, _ in run.breached():
            if isinstance(here.point.node, ast.Call):
                found[Delayed(key.function, here.point.node, number)] = None
    return tuple(found)


def _delays(program: Program, function: Function, call: ast.AST) -> bool:
    """Tell whether a context may be one that leaves gradients scaled."""
    if not isinstance(call, ast.expr):
        return False
    choice = program.decides(function, call)
    never = choice is not None and refine(NOTHING, choice.asked, True) is None
    return choice is not None and choice.true is Context.DELAYS and not never
