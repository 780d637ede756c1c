"""What a run of a machine keeps of every function: the states that it met, and how it came to them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from amp_migrate.facts.mark import Mark
from amp_migrate.flow.assumption import Assumption, Known
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function
from amp_migrate.protocol.code.exceptions import RAISED
from amp_migrate.protocol.faults import Breach
from amp_migrate.training.events import Event


class Start(Mark):
    """Where a run of a function begins."""

    ENTRY = "entry"
    RESUME = "resume"  # behind a `yield`


class State(NamedTuple):
    """The state of the machine, and what is known of tests."""

    machine: Hashable
    known: Assumption


class Key(NamedTuple):
    """A run of a function from one state on."""

    function: Function
    start: Start
    state: State


class Here(NamedTuple):
    """A moment of a run; `turned` tells at the head of a loop whether a turn is behind it."""

    point: Point
    state: State
    turned: bool = False


@dataclass
class Summary:
    """The states in which a run ends, raises or suspends, who waits for them, and how each moment was reached."""

    exits: dict[State, None] = field(default_factory=dict)
    raises: dict[State, None] = field(default_factory=dict)
    yields: dict[State, None] = field(default_factory=dict)
    waiting: dict[tuple[Key, Here], None] = field(default_factory=dict)
    came: dict[Here, Here | None] = field(default_factory=dict)
    apart: dict[tuple[Point, Hashable, bool], int] = field(default_factory=dict)


States = dict[State, None]
"""States, each once, in the order in which they were met."""
Wait = Callable[[Key, Here, Key], Summary]
"""Begins a run of a function for a moment of another, which is gone over again when the run comes to new ends."""


@dataclass
class Awaited:
    """What a call may run, no summary for what has no events or suspends, what is known then, and how many of its ends were taken."""

    function: Function | None
    known: Assumption
    summary: Summary | None
    exits: int = 0
    raises: int = 0

    def exited(self) -> list[State]:
        """Return the states in which the function returned since this was last asked."""
        assert self.summary is not None
        found = list(islice(self.summary.exits, self.exits, None))
        self.exits += len(found)
        return found

    def raised(self) -> list[State]:
        """Return the states in which exceptions left the function since this was last asked."""
        assert self.summary is not None
        found = list(islice(self.summary.raises, self.raises, None))
        self.raises += len(found)
        return found


def stops(state: State) -> bool:
    """Tell whether what is raised may say that no item is left."""
    raised = state.known.get(RAISED)
    return not isinstance(raised, Known) or raised.value == "StopIteration"


Sought = tuple[Breach, ast.AST]
"""A breach and the node at which a run meets it."""


class Breached(NamedTuple):
    """A breach at a moment of a run, and the event that is it."""

    breach: Breach
    key: Key
    here: Here
    event: Event
    certain: bool

    @property
    def sought(self) -> Sought:
        """What another run looks for that is to show it."""
        return self.breach, self.here.point.node
