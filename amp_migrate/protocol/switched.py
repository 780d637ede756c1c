"""A machine over a training whose GradScaler is off until another takes its place."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from amp_migrate.project import Function
from amp_migrate.protocol.machine import Choosy, Machine, Moved, Outlives
from amp_migrate.training.contexts import Context, is_off
from amp_migrate.training.events import Event, Kind


class Switch(NamedTuple):
    """The state of the machine inside, and whether the GradScaler that is on has been made."""

    state: Hashable
    on: bool = False


class Switched:
    """Runs a machine of which events of some GradScalers, by number, are in doubt only until those are on."""

    def __init__(self, machine: Machine, scalers: frozenset[int]) -> None:
        self._machine = machine
        self._scalers = scalers

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Nothing is on when a program begins."""
        return tuple(map(Switch, self._machine.starts(called)))

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        assert isinstance(state, Switch)
        on = state.on
        if event.scaler in self._scalers:
            if event.kind is Kind.MAKE_SCALER and isinstance(event.node, ast.Call):
                on = not is_off(event.node)
            elif on and event.unsure:
                event = replace(event, unsure=False)
        moved = self._machine.move(state.state, event, visited)
        return moved._replace(states=tuple(Switch(after, on) for after in moved.states))

    def ended_in(self, state: Hashable, before: Hashable, function: Function) -> Hashable:
        """Return the state behind a call of a function."""
        assert isinstance(state, Switch) and isinstance(before, Switch)
        if not isinstance(self._machine, Outlives):
            return state
        return Switch(self._machine.ended_in(state.state, before.state, function), state.on)

    def concerns(self, event: Event) -> bool:
        """Tell whether an event concerns the machine inside, or one of the GradScalers."""
        inner = self._machine
        return (
            event.scaler in self._scalers or not isinstance(inner, Choosy) or inner.concerns(event)
        )

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state behind an event that raised an exception."""
        assert isinstance(state, Switch)
        return Switch(self._machine.failed(state.state, event), state.on)

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""
        assert isinstance(state, Switch)
        return Switch(self._machine.enter(state.state, context), state.on)

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context, and whatever was entered in it."""
        assert isinstance(state, Switch)
        return Switch(self._machine.leave(state.state, context), state.on)


def switched(machine: Machine, scalers: frozenset[int]) -> Machine:
    """Return a machine that knows when some GradScalers are on; the machine itself if there are none."""
    return Switched(machine, scalers) if scalers else machine
