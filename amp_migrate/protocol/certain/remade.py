"""Whether a GradScaler is made anew while an optimizer that it served goes on."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.facts.mark import Mark
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.training.events import Event, Kind


class Life(Mark):
    """What a GradScaler is to its optimizers."""

    NEW = "has stepped none that is still in use"
    USED = "has stepped one"
    ANEW = "is made anew since it stepped one"


class RemadeMachine(Unmoved):
    """Follows one GradScaler. None of its optimizers is left where one of `homes` has ended that made them all."""

    def __init__(
        self, number: int, optimizers: frozenset[int], homes: frozenset[Function] = frozenset()
    ) -> None:
        self._number = number
        self._optimizers = optimizers
        self._homes = homes

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """No GradScaler has stepped when a program begins."""
        return (Life.NEW,)

    def ended_in(self, state: Hashable, before: Hashable, function: Function) -> Hashable:
        """Return the state behind a function: one whose variables alone held the optimizers leaves none in use."""
        return before if before is Life.NEW and function in self._homes else state

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
