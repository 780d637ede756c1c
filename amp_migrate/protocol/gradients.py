"""The gradients of one optimizer and its part of the GradScaler, while AMP is on."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from amp_migrate.facts.mark import Mark
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.training.events import Event, Kind


class Grad(Mark):
    """What the gradients are.

    STALE: multiplied by a scale that `update()` may have changed since. OLD: those of a step that is over, or of
    which nothing is known. CLEARED: empty again since a scaled backward in which nothing has looked for an overflow.
    MISSING: empty as the forward raised an exception. NONE: there is no such optimizer.
    """

    EMPTY = "empty"
    SCALED = "scaled"
    STALE = "scaled before the last update"
    PLAIN = "never scaled"
    TRUE = "unscaled"
    MIXED = "mixed"
    OLD = "old"
    CLEARED = "cleared unchecked"
    MISSING = "not there"
    NONE = "of no optimizer"


class Stage(Mark):
    """Where the scaler is with one optimizer since its last `update()`."""

    READY = "ready"
    UNSCALED = "unscaled"
    STEPPED = "stepped"


class State(NamedTuple):
    """Gradients and stage together; `sure` tells that the last backward is known to reach the optimizer.

    `kept` is what gradients were that were put aside. `unchecked` tells that since the last step gradients were unscaled
    that no step took, so that nothing asks any more whether they had overflowed. `maybe` is the number of the
    GradScaler that may be off and has unscaled them if it is on.
    """

    grad: Grad
    stage: Stage
    sure: bool = True
    kept: Grad = Grad.OLD
    unchecked: bool = False
    maybe: int | None = None

    def at(self, grad: Grad, stage: Stage) -> State:
        """Return the state with gradients of which something is known, and another stage."""
        return self._replace(grad=grad, stage=stage, sure=True)


_SCALED = (Grad.SCALED, Grad.STALE, Grad.MIXED)
_EMPTY = (Grad.EMPTY, Grad.CLEARED, Grad.MISSING)
_IN_DOUBT = (
    Breach.SCALED_READ,
    Breach.UNSCALED_READ,
    Breach.RESCALED,
)  # of an event that may concern any of several
_ANEW = (Kind.BACKWARD, Kind.STEP, Kind.ZERO_GRAD)
_START = State(Grad.EMPTY, Stage.READY)
_NONE = State(Grad.NONE, Stage.READY)
_AFTER_SCALED = {
    Grad.EMPTY: Grad.SCALED,
    Grad.SCALED: Grad.SCALED,
    Grad.STALE: Grad.STALE,
    Grad.PLAIN: Grad.MIXED,
    Grad.TRUE: Grad.MIXED,
    Grad.MIXED: Grad.MIXED,
    Grad.OLD: Grad.SCALED,
    Grad.CLEARED: Grad.SCALED,
    Grad.MISSING: Grad.SCALED,
}
_AFTER_PLAIN = {
    Grad.EMPTY: Grad.PLAIN,
    Grad.SCALED: Grad.MIXED,
    Grad.STALE: Grad.MIXED,
    Grad.PLAIN: Grad.PLAIN,
    Grad.TRUE: Grad.TRUE,
    Grad.MIXED: Grad.MIXED,
    Grad.OLD: Grad.PLAIN,
    Grad.CLEARED: Grad.PLAIN,
    Grad.MISSING: Grad.PLAIN,
}


def waits_unscaled(state: Hashable) -> bool:
    """Tell whether gradients are unscaled in a state, and nothing has stepped on them since."""
    inner = getattr(state, "state", state)
    return isinstance(inner, State) and inner.stage is Stage.UNSCALED and inner.grad is Grad.TRUE


class GradientMachine(Unmoved):
    """Follows one optimizer by its number.

    A backward or a read that may concern any optimizer concerns this one; `alone` tells whether there is no
    other, in which case a backward does reach it. With `lost`, it is not known where the optimizer was made: what
    clears another one may clear its gradients. With `begins`, there is none until a program makes it, and none again
    once one of `homes` has ended that made it.
    """

    def __init__(
        self,
        number: int,
        scalers: frozenset[int],
        alone: bool,
        lost: bool = False,
        begins: bool = False,
        homes: frozenset[Function] = frozenset(),
    ) -> None:
        self._number = number
        self._scalers = scalers
        self._alone = alone
        self._lost = lost
        self._begins = begins
        self._homes = homes

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Gradients are empty when a program begins, and nobody's where it makes the optimizer."""
        return (_NONE if self._begins and not called else _START,)

    def ended_in(self, state: Hashable, before: Hashable, function: Function) -> Hashable:
        """Return the state behind a call of a function, which may have made the optimizer and kept it to itself."""
        return _NONE if before == _NONE and function in self._homes else state

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """What raised has not changed the gradients: where a forward did, there are still none."""
        assert isinstance(state, State)
        lacks = event.kind is Kind.FORWARD and state.grad is Grad.EMPTY
        return state._replace(grad=Grad.MISSING) if lacks and self.concerns(event) else state

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may concern the optimizer."""
        return event.may_concern(self._number)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, State)
        if event.kind in (Kind.UPDATE, Kind.SET_SCALE) and event.scaler in self._scalers:
            if state.grad is Grad.NONE:
                return Moved((state,))
            stale = state.sure and state.grad is Grad.SCALED
            grad = Grad.STALE if stale else _forgotten(state.grad)
            kept = Grad.STALE if state.kept is Grad.SCALED else state.kept
            unchecked = state.unchecked or state.stage is Stage.UNSCALED
            return Moved((State(grad, Stage.READY, state.sure, kept, unchecked),))
        if not self.concerns(event):
            return Moved((state,))
        if state.grad is Grad.NONE and event.kind is not Kind.MAKE:
            if event.optimizers != frozenset({self._number}):
                return Moved((state,))
            state = State(Grad.OLD, Stage.READY)  # made where no call in sight leads to
        state = state._replace(maybe=None) if event.kind in _ANEW else state
        moved = self._moved(state, event)
        if event.unsure:
            return _unsurely(state, event, moved, visited or event.certain)
        if visited or event.optimizers is None or event.certain:
            return moved
        breaches = tuple(b for b in moved.breaches if b in _IN_DOUBT)
        if event.kind is Kind.ZERO_GRAD:
            return Moved((state._replace(grad=Grad.EMPTY),), breaches)
        if event.kind is Kind.UNSCALE:
            return Moved(moved.states, breaches)
        left = _forgotten(state.grad) if event.kind is Kind.BACKWARD else state.grad
        return Moved(tuple(dict.fromkeys((*moved.states, state._replace(grad=left)))), breaches)

    def _moved(self, state: State, event: Event) -> Moved:
        if event.kind is Kind.BACKWARD:
            return self._backward(state, event)
        if event.kind is Kind.READ_GRAD:
            if event.scaled:
                wrong = state.grad in (Grad.STALE, Grad.PLAIN, Grad.TRUE, Grad.MIXED)
                return Moved((state,), (Breach.UNSCALED_READ,) if wrong else ())
            bad = state.grad in _SCALED
            return Moved((state,), (Breach.SCALED_READ,) if bad else ())
        if event.kind is Kind.KEEP_GRAD:
            return Moved((state._replace(kept=state.grad),))
        if event.kind is Kind.GIVE_GRAD:
            given = state._replace(grad=state.kept)
            sure = self._alone or event.optimizers is not None
            return Moved((given,) if sure else tuple(dict.fromkeys((given, state))))
        if event.kind in (Kind.PUT_GRAD, Kind.CHANGE_GRAD):
            grad = _put(state) if event.kind is Kind.PUT_GRAD else state.grad
            breaches = (Breach.KEPT_UNCHECKED,) if state.unchecked else ()
            return Moved((state._replace(grad=grad),), breaches)
        if event.kind is Kind.MAKE:
            return Moved((_START,))
        if event.kind is Kind.ABSENT:
            return Moved((state._replace(grad=Grad.EMPTY),))
        if event.kind is Kind.ZERO_GRAD:
            known = event.optimizers is not None or self._alone
            unchecked = known and state.sure and state.grad is Grad.SCALED and not self._lost
            return Moved((state._replace(grad=Grad.CLEARED if unchecked else Grad.EMPTY),))
        if event.kind is Kind.UNSCALE:
            return _unscale(state)
        if event.kind is Kind.STEP:
            state = state._replace(unchecked=False)
            return _step(state) if event.scaler is not None else _plain_step(state)
        if event.kind is Kind.HANDED and event.scaler is None and not event.assumed:
            checked = state.grad is Grad.TRUE and state.stage is Stage.UNSCALED
            return Moved((state,), (Breach.HANDED,) if checked or state.grad in _SCALED else ())
        return Moved((state,))

    def _backward(self, state: State, event: Event) -> Moved:
        states: dict[Hashable, None] = {}
        breaches: tuple[Breach, ...] = ()
        if event.scaled is not False:
            sure = self._alone or event.optimizers is not None
            kept = sure or (state.sure and state.grad in _SCALED)
            mixes = state.grad is Grad.OLD and not self._lost
            grad = Grad.MIXED if mixes else _AFTER_SCALED[state.grad]
            states[state._replace(grad=grad, sure=kept)] = None
            if state.grad is Grad.TRUE and self._alone:
                breaches = (Breach.AFTER_UNSCALE,)
        if event.scaled is not True:
            states[state._replace(grad=_AFTER_PLAIN[state.grad])] = None
        if not self._alone and event.optimizers is None:
            states[state._replace(grad=_forgotten(state.grad))] = None
        return Moved(tuple(states), breaches)


def _put(state: State) -> Grad:
    """Return what gradients are that were worked out apart: of true ones, unless those that they replace were not read."""
    if state.grad in _SCALED:
        return state.grad
    return Grad.TRUE if state.stage is Stage.UNSCALED else Grad.PLAIN


def _forgotten(grad: Grad) -> Grad:
    return Grad.EMPTY if grad in _EMPTY else grad


def _unsurely(state: State, event: Event, moved: Moved, certain: bool) -> Moved:
    """Return what a GradScaler that may be off makes of a state; it is on or off for all that it does to the gradients."""
    unscales = event.kind is Kind.UNSCALE and certain
    twice = unscales and state.maybe is not None and state.maybe == event.scaler
    behind = state._replace(maybe=event.scaler if unscales else None)
    behind = behind.at(_after_unsure(moved.states[0]), Stage.READY)
    return Moved((behind,), (Breach.UNSCALED_TWICE,) if twice else ())


def _after_unsure(state: Hashable) -> Grad:
    """Return what gradients are behind a scaler that may be off: whatever it left, it left rightly."""
    assert isinstance(state, State)
    return Grad.EMPTY if state.grad in _EMPTY else Grad.OLD


def _unscale(state: State) -> Moved:
    if state.stage is Stage.UNSCALED:
        return Moved((state,), (Breach.UNSCALED_TWICE,))
    if state.stage is Stage.STEPPED:
        return Moved((state,), (Breach.UNSCALED_LATE,))
    return Moved((state.at(_true(state.grad), Stage.UNSCALED),), _added(state))


def _step(state: State) -> Moved:
    if state.stage is Stage.STEPPED:
        return Moved((state,), (Breach.STEPPED_TWICE,))
    if state.grad is Grad.CLEARED:
        return Moved((state.at(Grad.EMPTY, Stage.STEPPED),), (Breach.CLEARED,))
    if state.grad is Grad.MISSING:
        return Moved((state.at(Grad.EMPTY, Stage.STEPPED),), (Breach.WITHOUT_GRADIENTS,))
    breaches = _added(state) if state.stage is Stage.READY or state.grad in _SCALED else ()
    if state.stage is Stage.UNSCALED and state.grad in (Grad.SCALED, Grad.STALE):
        breaches = (Breach.SCALED_STEP,)
    grad = state.grad if state.grad is Grad.EMPTY else Grad.OLD
    return Moved((state.at(grad, Stage.STEPPED),), breaches)


def _plain_step(state: State) -> Moved:
    grad = Grad.EMPTY if state.grad in _EMPTY else Grad.OLD
    breaches: tuple[Breach, ...] = ()
    if state.grad in _SCALED:
        breaches = (Breach.SCALED_STEP,)
    elif state.grad is Grad.TRUE:
        breaches = (Breach.UNCHECKED,)
    return Moved((state._replace(grad=grad),), breaches)


def _true(grad: Grad) -> Grad:
    return grad if grad in (*_EMPTY, Grad.OLD) else Grad.TRUE


def _added(state: State) -> tuple[Breach, ...]:
    """What dividing the gradients by the scale breaks."""
    if state.grad is Grad.MIXED:
        return (Breach.MIXED,)
    if state.grad is Grad.STALE:
        return (Breach.RESCALED,)
    return (Breach.DIVIDED,) if state.grad in (Grad.PLAIN, Grad.TRUE) else ()
