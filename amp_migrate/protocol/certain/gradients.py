"""The gradients of optimizers that a program does not tell apart, as far as they are known for certain."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.protocol.gradients import Grad, GradientMachine, Stage, State
from amp_migrate.protocol.machine import Moved
from amp_migrate.training.events import Event, Kind


class CertainGradients(GradientMachine):
    """Follows optimizers of which any path has one alone, by their numbers.

    Gradients of which nothing is known are `OLD`: whatever is done with them is right. `alone` tells whether no
    GradScaler has another optimizer, `sole` whether the program has no other one at all.
    """

    def __init__(
        self, numbers: frozenset[int], scalers: frozenset[int], alone: bool, sole: bool
    ) -> None:
        super().__init__(min(numbers), scalers, alone, lost=True)
        self._numbers = numbers
        self._sole = sole

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may concern the optimizers."""
        own = bool((event.optimizers or frozenset()) & self._numbers)
        if event.kind is Kind.HANDED:
            return own or event.scaler in self._scalers
        if event.kind in (Kind.UPDATE, Kind.SET_SCALE):
            return event.scaler in self._scalers
        lasts = event.assumed or event.kind is Kind.MAKE_SCALER
        return not lasts and (own or event.optimizers is None)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, State)
        if event.kind in (Kind.UPDATE, Kind.SET_SCALE) and event.scaler in self._scalers:
            return super().move(state, event, visited)
        if event.kind is Kind.HANDED:
            return Moved((self._handed(state, event),))
        if event.kind in (Kind.PUT_GRAD, Kind.CHANGE_GRAD) and self.concerns(event):
            return Moved((_unknown(state, state.stage),))
        if event.kind is Kind.OTHER_STEP:
            meant = state.grad in (Grad.PLAIN, Grad.MIXED)
            return Moved((_unknown(state, state.stage) if meant else state,))
        if event.assumed or not self.concerns(event):
            return Moved((state,))
        if not self._surely(event, visited):
            unclear = event.kind in (Kind.STEP, Kind.UNSCALE)
            return Moved((_unknown(state, Stage.READY if unclear else state.stage),))
        moved = self._moved(state, event)
        if event.unsure:
            return Moved((_unknown(state, Stage.READY),))
        return moved

    def _surely(self, event: Event, visited: bool) -> bool:
        if event.kind is Kind.BACKWARD and event.scaled is None:
            return False
        if event.kind in (Kind.READ_GRAD, Kind.ZERO_GRAD) or visited:
            return True
        if event.optimizers is None:
            return self._alone and (self._sole or event.scaled is True or event.scaler is not None)
        return event.optimizers <= self._numbers

    def _handed(self, state: State, event: Event) -> State:
        if event.scaler in self._scalers:
            return _unknown(state, Stage.READY)
        if event.optimizers is not None and event.optimizers & self._numbers:
            return _unknown(state, state.stage)
        return state


def _unknown(state: State, stage: Stage) -> State:
    return State(Grad.OLD, stage)
