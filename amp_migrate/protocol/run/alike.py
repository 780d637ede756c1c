"""Machines of which nothing that happens in a program tells one from another: one run is the run of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import TypeVar, cast

from amp_migrate.project import Function
from amp_migrate.protocol.machine import Choosy, Machine, Moved, Outlives
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Event

T = TypeVar("T")


class Alike:
    """Runs machines, once for all that would answer alike whatever a run asks them.

    Each run follows what concerns any of the `machines`, so that it asks what a run of each of the others asks.
    """

    def __init__(self, machines: Collection[Machine]) -> None:
        self._machines = machines
        self._made: dict[Hashable, list[tuple[Recorded, object]]] = {}

    def of(self, machine: Machine, asked: Hashable, run: Callable[[Machine], T]) -> T:
        """Return what `run` makes of one of the machines to its end; `asked` is all else that the run depends on."""
        known = self._made.setdefault(asked, [])
        for other, made in known:
            if other.answers_as(machine):
                return cast("T", made)
        recorded = Recorded(machine, self._concerns)
        known.append((recorded, made := run(recorded)))
        return made

    def _concerns(self, event: Event) -> bool:
        """Tell whether an event concerns any of the machines."""
        return any(not isinstance(m, Choosy) or m.concerns(event) for m in self._machines)


class Recorded:
    """A machine that keeps what it was asked and what it answered; `concerns` tells what its runs follow."""

    def __init__(self, machine: Machine, concerns: Callable[[Event], bool]) -> None:
        self._machine = machine
        self.concerns = concerns
        self._moved: dict[tuple[Hashable, Event, bool], Moved] = {}
        self._failed: dict[tuple[Hashable, Event], Hashable] = {}
        self._ended: dict[tuple[Hashable, Hashable, Function], Hashable] = {}
        self._starts: dict[bool, tuple[Hashable, ...]] = {}

    def answers_as(self, other: Machine) -> bool:
        """Tell whether another machine would have answered all that this one was asked as this one did."""
        outlives = other if isinstance(other, Outlives) else None
        return (
            all(other.starts(called) == states for called, states in self._starts.items())
            and all(other.move(*asked) == moved for asked, moved in self._moved.items())
            and all(other.failed(*asked) == state for asked, state in self._failed.items())
            and all(
                (asked[0] if outlives is None else outlives.ended_in(*asked)) == state
                for asked, state in self._ended.items()
            )
        )

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Return the states in which a program begins."""
        return self._starts.setdefault(called, self._machine.starts(called))

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state."""
        asked = state, event, visited
        moved = self._moved.get(asked)
        if moved is None:
            moved = self._moved[asked] = self._machine.move(state, event, visited)
        return moved

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state behind an event that raised an exception."""
        asked = state, event
        if asked not in self._failed:
            self._failed[asked] = self._machine.failed(state, event)
        return self._failed[asked]

    def ended_in(self, state: Hashable, before: Hashable, function: Function) -> Hashable:
        """Return the state behind a call of a function; `before` is that in front of it."""
        if not isinstance(self._machine, Outlives):
            return state
        asked = state, before, function
        if asked not in self._ended:
            self._ended[asked] = self._machine.ended_in(*asked)
        return self._ended[asked]

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""
        return self._machine.enter(state, context)

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context, and whatever was entered in it."""
        return self._machine.leave(state, context)
