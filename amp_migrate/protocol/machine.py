"""The machines that run over a training: each keeps a small state and says what breaks the protocol."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from amp_migrate.flow.assumption import Assumption
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Breach
from amp_migrate.training.contexts import Context
from amp_migrate.training.events import Event

S = TypeVar("S", bound=Hashable)


class Moved(NamedTuple):
    """The states after an event, and the breaches that it is in some of them."""

    states: tuple[Hashable, ...]
    breaches: tuple[Breach, ...] = ()


class Machine(Protocol):
    """A finite machine over events and contexts. States are hashable and never changed."""

    def starts(self, called: bool) -> tuple[Hashable, ...]:
        """Return the states in which a program begins.

        `called` tells of a function that code out of reach calls, at any time.
        """

    def move(self, state: Hashable, event: Event, visited: bool) -> Moved:
        """Return what an event makes of a state.

        `visited` tells that the event concerns the one optimizer that a loop around it visits.
        """

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state behind an event that raised an exception."""

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state inside a context."""

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state behind a context, and whatever was entered in it."""


class Unmoved:
    """A machine whose states change with no context and no exception, where it does not say otherwise."""

    def failed(self, state: Hashable, event: Event) -> Hashable:
        """Return the state as it was before."""
        return state

    def enter(self, state: Hashable, context: Context) -> Hashable:
        """Return the state as it was outside."""
        return state

    def leave(self, state: Hashable, context: Context) -> Hashable:
        """Return the state as it was inside."""
        return state


@runtime_checkable
class Choosy(Protocol):
    """What a machine has besides that most events are no matter of, in any state."""

    def concerns(self, event: Event) -> bool:
        """Tell whether an event may change a state, or be a breach in one."""


@runtime_checkable
class Sleeps(Protocol):
    """What a machine has besides where nothing happens to some of its states outside of autocast."""

    def asleep(self, state: Hashable) -> bool:
        """Tell whether a function that enters no autocast leaves a state as it is, and breaks nothing in it."""


@runtime_checkable
class FollowsObjects(Protocol):
    """What a machine has besides where its states say in which object's method a program is."""

    def begin(
        self, state: Hashable, caller: Function, call: ast.Call | None, known: Assumption
    ) -> Hashable:
        """Return the state in which a function begins that a call runs, by what is known there; without a call, one that runs unnamed."""

    def end(self, state: Hashable, before: Hashable) -> Hashable:
        """Return the state behind a function; `before` is that in front of it."""


@runtime_checkable
class Outlives(Protocol):
    """What a machine has besides where what it follows is gone once the function that made it has ended."""

    def ended_in(self, state: Hashable, before: Hashable, function: Function) -> Hashable:
        """Return the state behind a call of a function; `before` is that in front of it."""


@runtime_checkable
class Nests(Protocol):
    """What a machine has besides where a function sees the nearest of the contexts around its call alone."""

    def nested(self, state: Hashable) -> Hashable:
        """Return the state in which a function begins, with those contexts alone that it can see."""

    def outer(self, state: Hashable, before: Hashable) -> Hashable:
        """Return the state behind a function, with all contexts around its call; `before` is that in front of it."""

    def innermost(self, state: Hashable, contexts: Collection[Context]) -> Context | None:
        """Return which of some contexts was entered last."""


@runtime_checkable
class FollowsTests(Protocol):
    """What a machine has besides where it matters which tests came out, and that a loop has ended."""

    def ended(self, state: Hashable) -> Hashable:
        """Return the state where a loop has no item left."""

    def tested(self, state: Hashable, test: ast.expr) -> Hashable:
        """Return the state behind a test."""
