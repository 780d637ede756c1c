"""What runs inside autocast blocks, and which weights a block has cast without gradients."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable
from functools import cache
from typing import NamedTuple

from amp_migrate.flow.assumption import Assumption
from amp_migrate.project import Function
from amp_migrate.protocol.calls.networks import RUNS
from amp_migrate.protocol.calls.receivers import Object, Receivers, may_be_same
from amp_migrate.protocol.casts.networks import EACH, Cached, Networks
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved, Unmoved
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Event, Kind

_DEEPEST = 12  # a recursion that enters contexts is followed no further down
_CASTING = (Context.CASTS, Context.NO_CASTS)
_MODES = (Context.NO_GRAD, Context.GRAD)
_TELL = (*_CASTING, *_MODES)
OF_NETWORKS = (Breach.CACHED, Breach.CAST_WRITE)
"""The breaches that hang on which networks run, or are written."""
_SCALING = (Context.DELAYS, Context.DIVIDES)


class Inside(NamedTuple):
    """The contexts around a place, outermost first, and the networks of one forward whose weights are cached.

    `cached` are those that one ran without gradients, and `ran` those that one ran whose weights something writes by hand;
    what several forwards have run is a state for each of them. `object` is that whose method runs, None where it is not
    known, or outside of casts.
    """

    contexts: tuple[Context, ...] = ()
    cached: frozenset[Cached] = frozenset()
    ran: frozenset[int] = frozenset()
    object: Object | None = None

    @property
    def follows(self) -> bool:
        """Whether weights are cached that are followed here."""
        return bool(self.cached or self.ran)

    def uncached(self) -> Inside:
        """Return the same without weights that are cached."""
        return Inside(self.contexts, object=self.object)

    @property
    def casts(self) -> bool:
        """Whether autocast is on."""
        return next((c for c in reversed(self.contexts) if c in _CASTING), None) is Context.CASTS

    @property
    def no_grad(self) -> bool:
        """Whether gradients are off."""
        return next((c for c in reversed(self.contexts) if c in _MODES), None) is Context.NO_GRAD


class CastMachine(Unmoved):
    """Follows the contexts of a program, with AMP on; `networks` tells which networks are told apart in them."""

    def __init__(self, networks: Networks = EACH) -> None:
        self.networks = networks

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """A program begins outside of all contexts."""
        return (Inside(),)

    def asleep(self, state: Hashable) -> bool:
        """Tell whether no autocast is around."""
        assert isinstance(state, Inside)
        return Context.CASTS not in state.contexts

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""
        assert isinstance(state, Inside)
        if context in _SCALING or len(state.contexts) == _DEEPEST:
            return state
        return state._replace(contexts=(*state.contexts, context))

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context; the weight cache goes with the outermost autocast."""
        assert isinstance(state, Inside)
        if context not in state.contexts:
            return state
        last = len(state.contexts) - 1 - state.contexts[::-1].index(context)
        left = state._replace(contexts=state.contexts[:last])
        return left if any(c in _CASTING for c in left.contexts) else Inside(left.contexts)

    def nested(self, state: Hashable) -> Hashable:
        """Return the state in a function that is called: of the contexts around it only the innermost count there."""
        assert isinstance(state, Inside)
        seen = _seen(state.contexts)
        if len(seen) == len(state.contexts):
            return state
        return state._replace(contexts=tuple(state.contexts[place] for place in seen))

    def outer(self, state: Hashable, before: Hashable) -> Hashable:
        """Return the state behind a function; what it left of the contexts that it saw takes those around with it."""
        assert isinstance(state, Inside) and isinstance(before, Inside)
        seen, around = _seen(before.contexts), before.contexts
        if len(seen) == len(around):
            return state
        kept = next(
            (
                count
                for count, place in enumerate(seen)
                if state.contexts[count : count + 1] != (around[place],)
            ),
            len(seen),
        )
        left = around if kept == len(seen) else around[: seen[kept]]
        return state._replace(contexts=(*left, *state.contexts[kept:])[:_DEEPEST])

    def innermost(self, state: Hashable, contexts: Collection[Context]) -> Context | None:
        """Return which of some contexts was entered last."""
        assert isinstance(state, Inside)
        return next((context for context in reversed(state.contexts) if context in contexts), None)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, Inside)
        if not state.casts:
            return Moved((state,))
        if event.kind is Kind.STEP:
            return Moved((state,), (Breach.CAST_STEP,))
        if event.kind is Kind.WEIGHT_WRITE:
            stale = not event.networks or self.networks.writes(event, state.ran)
            return Moved((state,), (Breach.CAST_WRITE,) if stale else ())
        if event.kind is Kind.RUNS_WRITTEN:
            ran = state._replace(ran=self.networks.ran(event))
            return Moved((state,) if state.follows else tuple(dict.fromkeys((state, ran))))
        if event.kind is Kind.BACKWARD and event.scaled:
            return Moved((state,), (Breach.CAST_BACKWARD,))
        if event.kind is Kind.REFUSES_CASTS:
            return Moved((state,), (Breach.REFUSED,))
        if event.kind is Kind.RECORDS:
            return Moved((state,), (Breach.RECORDED,))
        if event.kind is Kind.CLEAR_CASTS:
            return Moved((state.uncached(),))
        return self.forward(state, event) if event.kind in RUNS else Moved((state,))

    def forward(self, state: Inside, event: Event) -> Moved:
        """Return what becomes of a state where networks run, or parts of them."""
        around = state.object if event.own else None
        if state.no_grad and not state.follows:
            if self.networks.bodies.already(event.node):
                return Moved((state,))
            cached = self.networks.cached(event, around)
            return Moved((state, state._replace(cached=cached)) if cached else (state,))
        if not state.follows and (left := self.networks.left(event, around)):
            return Moved((state, state._replace(cached=left)))
        again = not state.no_grad and any(
            self.networks.again(event, old) and may_be_same(old.around, around)
            for old in state.cached
        )
        return Moved((state,), (Breach.CACHED,) if again else ())


class ObjectMachine(CastMachine):
    """Follows the contexts of a program, and in them the objects whose methods run: parts of two of them are two."""

    def __init__(self, receivers: Receivers, networks: Networks = EACH) -> None:
        super().__init__(networks)
        self._receivers = receivers

    def begin(
        self, state: Hashable, caller: Function, call: ast.Call | None, known: Assumption
    ) -> Hashable:
        """Return the state in which a function begins."""
        assert isinstance(state, Inside)
        found = None
        if call is not None and state.casts:
            found = self._receivers.of(caller, call, state.object, known)
        return state._replace(object=found)

    def end(self, state: Hashable, before: Hashable) -> Hashable:
        """Return the state behind a function."""
        assert isinstance(state, Inside) and isinstance(before, Inside)
        return state._replace(object=before.object if state.casts else None)


class PartMachine(CastMachine):
    """Follows one method of a network inside an autocast block; `parts` are the nodes of its class that run its parts."""

    def __init__(self, parts: frozenset[ast.AST]) -> None:
        super().__init__()
        self._parts = parts

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """The method begins inside of a block."""
        return (Inside((Context.CASTS,)),)

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, Inside)
        if event.kind is Kind.PART and event.node in self._parts and state.casts:
            return self.forward(state, event)
        if event.kind is Kind.CLEAR_CASTS:
            return Moved((state.uncached(),))
        return Moved((state,))


@cache
def _seen(contexts: tuple[Context, ...]) -> tuple[int, ...]:
    """Return the places of the contexts that tell whether autocast is on, and whether gradients are."""
    last = {
        context in _CASTING: place for place, context in enumerate(contexts) if context in _TELL
    }
    return tuple(sorted(last.values()))


class CertainCasts(CastMachine):
    """Follows the contexts of a program; a method of a network may run only some part of it."""

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        return Moved((state,)) if event.assumed else super().move(state, event, visited)


class CertainObjects(CertainCasts, ObjectMachine):
    """Follows the objects whose methods run in them as well."""
