"""Whether some step takes the gradients that a place reads, in whatever function of a program it stands."""

from __future__ import annotations

import ast
from collections.abc import Hashable

from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.programs import Programs
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.training.events import Event, Kind

_ENDS = (Kind.ZERO_GRAD, Kind.MAKE, Kind.ABSENT)


class TakenMachine(Unmoved):
    """Follows whether gradients of one optimizer by its number are there that a node reads."""

    def __init__(self, number: int, node: ast.AST) -> None:
        self._number = number
        self._node = node

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """None are there when a program begins."""
        return (False,)

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may concern the optimizer."""
        return event.may_concern(self._number)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return whether they are there behind an event."""
        if event.node is self._node and event.kind is Kind.READ_GRAD:
            return Moved((True,))
        if not self.concerns(event):
            return Moved((state,))
        if event.kind in _ENDS:
            return Moved((False,))
        if event.kind is Kind.STEP:
            return Moved((False,), (Breach.MIXED,) if state else ())
        return Moved((state,))


def taken(program: Program, number: int, node: ast.AST) -> bool:
    """Tell whether a step of an optimizer may take gradients that a node reads, before anything clears them."""
    part = program.of_gradients
    search = Search(part, Memory(part))
    machine = TakenMachine(number, node)
    return bool(search.run(machine, Programs(part).of_optimizers([number])).breached())
