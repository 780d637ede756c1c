"""Autocast blocks without telling networks apart: what runs in one may be any that another one ran there."""

from __future__ import annotations

from amp_migrate.protocol.casts.machine import Cached, CastMachine, CertainCasts, Inside
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.machine import Moved
from amp_migrate.training.events import Event

_ANY = -1
_CACHED = frozenset({Cached(_ANY)})
_RAN = frozenset({_ANY})


class RoughCasts(CastMachine):
    """Follows the contexts of a program, and in them only whether some network ran without gradients, or some that is written.

    It meets whatever a machine meets that tells networks apart, in far fewer states.
    """

    def written(self, state: Inside, event: Event) -> Moved:
        """Return what becomes of a state where networks run whose weights something writes by hand."""
        return Moved((state._replace(ran=_RAN),))

    def is_stale(self, state: Inside, event: Event) -> bool:
        """Tell whether weights are written that some network has run with."""
        return bool(state.ran)

    def forward(self, state: Inside, event: Event) -> Moved:
        """Return what becomes of a state where networks run, or parts of them."""
        if not event.networks and not event.within:
            return Moved((state,))
        if state.no_grad:
            return Moved((state._replace(cached=_CACHED),))
        return Moved((state,), (Breach.CACHED,) if state.cached else ())


class RoughCertainCasts(CertainCasts, RoughCasts):
    """Does the same where a method of a network may run only some part of it."""
