"""Which functions of a program may do something to a state of a machine."""

from __future__ import annotations

from collections.abc import Hashable
from collections.abc import Set as AbstractSet

from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.machine import Choosy, Machine, Sleeps


class Matter:
    """Tells apart what a machine has to follow: a run of any other function leaves each state as it is."""

    def __init__(self, program: Program, machine: Machine) -> None:
        self._ever = program.relevant
        if isinstance(machine, Choosy):
            self._ever = program.leading(machine.concerns)
        self._sleeps = machine if isinstance(machine, Sleeps) else None
        self._waking = self._ever
        if self._sleeps is not None:
            self._waking &= program.entering

    def asleep(self, state: Hashable) -> bool:
        """Tell whether only what enters autocast may do something to a state."""
        return self._sleeps is not None and self._sleeps.asleep(state)

    def of(self, asleep: bool) -> AbstractSet[Function]:
        """Return the functions that may do something to a state that is asleep, or to any other."""
        return self._waking if asleep else self._ever
