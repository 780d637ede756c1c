"""Gradients that `delay_unscale` leaves to a block of Apex which does not come before the step."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.facts.below import names_in
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.refine import refine
from amp_migrate.project import Function
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.standing import standing_of
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

    `asked` are the names that `delay_unscale` reads. A state says whether they are, whether a block around leaves them,
    None where no block tells, and whether a loop has ended since: of its last turn more is true than of any.
    """

    number: int
    named: Named
    asked: frozenset[str]

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return (_State(),)

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state as it was before what raised an exception."""
        return state

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""
        assert isinstance(state, _State)
        return state._replace(delays=context is Context.DELAYS) if context in _DELAYING else state

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context."""
        assert isinstance(state, _State)
        return state._replace(delays=None) if context in _DELAYING else state

    def ended(self, state: Hashable) -> Hashable:
        """Return the state behind a loop, whose last turn may have been another one than `delay_unscale` was told."""
        assert isinstance(state, _State)
        return state._replace(ended=state.left and bool(self.asked))

    def tested(self, state: Hashable, test: ast.expr) -> Hashable:
        """Return the state behind a test: one that reads what `delay_unscale` does tells of the last turn, too."""
        assert isinstance(state, _State)
        return state._replace(ended=state.ended and self.asked.isdisjoint(names_in(test)))

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, _State)
        own = event.may_concern(self.number)
        if event.kind is Kind.BACKWARD and state.delays is not None and own:
            return Moved((_State(state.delays, state.delays),))
        if event.kind is Kind.BACKWARD and self.number in self.named.get(event.node, ()):
            return Moved((_State(False, state.delays),))
        if event.kind in CLEARING and own:
            return Moved((_State(False, state.delays),))
        left = state.left and not state.ended
        stepped = event.kind is Kind.STEP and own and left and (visited or event.certain)
        return Moved((state,), (Breach.SCALED_STEP,) if stepped else ())


class _State(NamedTuple):
    left: bool = False
    delays: bool | None = None
    ended: bool = False


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
    asked: set[str] = set()
    for function, event in backwards(program):
        assert isinstance(event.node, ast.Call)
        named[event.node] = of_block(program, function, event.node)
        for delay in _delays(program, function, event.node):
            waiting |= named[event.node]
            asked |= names_in(delay)
    if not waiting:
        return ()
    asked |= {n for _, test in standing_of(program).behind(asked) for n in names_in(test)}
    asked -= {function.receiver for function in program.relevant if function.receiver}
    part = program.of_gradients
    search, programs = Search(part, CertainMemory(part)), Programs(part)
    found: dict[Delayed, None] = {}
    for number in sorted(waiting):
        run = search.run(
            DelayMachine(number, named, frozenset(asked)), programs.of_optimizers([number])
        )
        for _, key, here, _, _ in run.breached():
            if isinstance(here.point.node, ast.Call):
                found[Delayed(key.function, here.point.node, number)] = None
    return tuple(found)


def _delays(program: Program, function: Function, backward: ast.Call) -> Iterator[ast.expr]:
    """Yield what blocks around a backward ask whether to leave gradients scaled, where they may."""
    for call in around(function.module, backward):
        choice = program.decides(function, call) if isinstance(call, ast.expr) else None
        if choice is not None and choice.true is Context.DELAYS:
            if refine(NOTHING, choice.asked, True) is not None:
                yield choice.asked
