"""Steps whose gradients nothing clears on some path, so that a later step takes them again with those of its own."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.project.once import once
from amp_migrate.protocol.certain.memory import CertainMemory
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.training.events import Event, Kind

_FORGETS = (
    *(Kind.ZERO_GRAD, Kind.MAKE, Kind.ABSENT),
    *(Kind.READ_GRAD, Kind.KEEP_GRAD, Kind.GIVE_GRAD, Kind.PUT_GRAD, Kind.CHANGE_GRAD),
)
"""What leaves no gradients, or has a use for those of a step that is over."""


class _Used(NamedTuple):
    """The gradients: whether there are any, the step that took them, and whether a backward has added to them since."""

    there: bool = False
    step: ast.AST | None = None
    added: bool = False


@dataclass(frozen=True)
class Rewritten:
    """What a rewrite moves: the nodes that clear gradients and go, and the steps behind which it clears them."""

    gone: frozenset[ast.AST] = frozenset()
    behind: frozenset[ast.AST] = frozenset()


class UsedAgainMachine(Unmoved):
    """Follows the gradients of one optimizer by its number, in the program with what a rewrite moves."""

    def __init__(self, number: int, moved: Rewritten) -> None:
        self._number = number
        self._moved = moved

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """There are no gradients when a program begins."""
        return (_Used(),)

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may concern the optimizer."""
        return event.may_concern(self._number)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of the gradients; what may do anything to them forgets them."""
        assert isinstance(state, _Used)
        if event.assumed or not self.concerns(event) or event.node in self._moved.gone:
            return Moved((state,))
        if event.kind in _FORGETS or event.kind is Kind.HANDED:
            return Moved((_Used(),))
        sure = event.optimizers is not None
        if event.kind is Kind.BACKWARD and sure:
            return Moved((_Used(True, state.step, state.step is not None),))
        if event.kind is Kind.STEP and sure and state.there:
            breaches = (Breach.MIXED,) if state.added and (visited or event.certain) else ()
            cleared = event.node in self._moved.behind
            return Moved((_Used() if cleared else _Used(True, event.node),), breaches)
        return Moved((state,))


def used_again(program: Program, moved: Rewritten) -> frozenset[ast.AST]:
    """Return the steps whose gradients are surely there at a later step, on some path."""
    if moved not in (answers := _known(program)):
        answers[moved] = frozenset(_used_again(program, moved))
    return answers[moved]


@once
def _known(program: Program) -> dict[Rewritten, frozenset[ast.AST]]:
    return {}


def _used_again(program: Program, moved: Rewritten) -> Iterator[ast.AST]:
    part = program.of_gradients
    search, programs = Search(part, CertainMemory(part)), Programs(part)
    for optimizer in program.training.objects.optimizers:
        machine = UsedAgainMachine(optimizer.number, moved)
        anyhow = search.anyhow(machine, programs.of_optimizers([optimizer.number]))
        span = anyhow.leading_to(b.key.function for b in anyhow.breached())
        run = search.apart(machine, span)
        steps = {b.here.point.node for b in run.breached()}
        for summary in run.summaries.values() if steps else ():
            for here in summary.came:
                state = here.state.machine
                assert isinstance(state, _Used)
                if here.point.node in steps and state.added and state.step is not None:
                    yield state.step
