"""Whether a GradScaler is made anew while an optimizer that it served goes on."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.facts.mark import Mark
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.training.events import Event, Kind


class Life(Mark):
    """What a GradScaler is to its optimizers."""

    NEW = "has stepped none that is still in use"
    USED = "has stepped one"
    ANEW = "is made anew since it stepped one"


class RemadeMachine(Unmoved):
    """Follows one GradScaler."""

    def __init__(self, number: int, optimizers: frozenset[int]) -> None:
        self._number = number
        self._optimizers = optimizers

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """No GradScaler has stepped when a program begins."""
        return (Life.NEW,)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        if event.scaler == self._number and event.kind is Kind.MAKE_SCALER:
            return Moved((Life.NEW if state is Life.NEW else Life.ANEW,))
        if event.scaler == self._number and event.kind is Kind.STEP:
            breaches = (Breach.REMADE,) if state is Life.ANEW else ()
            return Moved((Life.NEW if event.unsure else Life.USED,), breaches)
        if event.kind in (Kind.MAKE, Kind.HANDED):
            if (event.optimizers or set()) & self._optimizers:
                return Moved((Life.NEW,))
        return Moved((state,))
