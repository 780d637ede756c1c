"""Whether a GradScaler has something to update from: it raises where nothing was unscaled or stepped."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Event, Kind


class ScalerMachine:
    """Follows one GradScaler; the state is whether any of its optimizers was checked since the last update."""

    def __init__(self, number: int) -> None:
        self._number = number

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is checked when a program begins; a function that is called from elsewhere may find all of it."""
        return (called,)

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """A step that raised has looked for overflows before."""
        return (event.kind is Kind.STEP and event.scaler == self._number) or state

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """No context changes a scaler."""
        return state

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """No context changes a scaler."""
        return state

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        if event.scaler != self._number:
            return Moved((state,))
        if event.kind is Kind.UPDATE:
            return Moved((False,), () if state or event.unsure else (Breach.UPDATE_ALONE,))
        if event.kind is Kind.SET_SCALE:
            return Moved((False,))
        return Moved((True,) if event.kind in (Kind.STEP, Kind.UNSCALE) else (state,))
