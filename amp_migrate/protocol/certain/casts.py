"""What surely runs inside autocast blocks."""

from __future__ import annotations

from collections.abc import Hashable

from amp_migrate.protocol.casts import ObjectMachine
from amp_migrate.protocol.machine import Moved
from amp_migrate.training.events import Event


class CertainCasts(ObjectMachine):
    """Follows the contexts of a program; a method of a network may run only some part of it."""

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        return Moved((state,)) if event.assumed else super().move(state, event, visited)
