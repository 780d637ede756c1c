"""What a machine has besides that concerns the functions a program goes into and comes out of."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable

from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.project import Function
from amp_migrate.protocol.machine import FollowsObjects, Machine, Nests, Outlives
from amp_migrate.protocol.run.runs import Start
from amp_migrate.training.contexts import Context


class Frames:
    """Takes states into functions and out of them; a generator that goes on leaves contexts of its own."""

    def __init__(self, machine: Machine) -> None:
        self._objects = machine if isinstance(machine, FollowsObjects) else None
        self._nests = machine if isinstance(machine, Nests) else None
        self._outlives = machine if isinstance(machine, Outlives) else None

    def begun(
        self,
        caller: Function,
        state: Hashable,
        call: ast.Call | None,
        start: Start = Start.ENTRY,
        known: Assumption = NOTHING,
    ) -> Hashable:
        """Return the state in which a function begins, by what is known where it is called."""
        if self._nests is not None and start is Start.ENTRY:
            state = self._nests.nested(state)
        return state if self._objects is None else self._objects.begin(state, caller, call, known)

    def ended(self, state: Hashable, before: Hashable, start: Start = Start.ENTRY) -> Hashable:
        """Return the state behind a function; `before` is that in front of it."""
        if self._nests is not None and start is Start.ENTRY:
            state = self._nests.outer(state, before)
        return state if self._objects is None else self._objects.end(state, before)

    def returned(
        self, state: Hashable, before: Hashable, function: Function, start: Start
    ) -> Hashable:
        """Return the state behind a function that a call in sight runs: what it made may be gone."""
        left = self.ended(state, before, start)
        if self._outlives is None or start is not Start.ENTRY:
            return left
        return self._outlives.ended_in(left, before, function)

    def innermost(self, state: Hashable, contexts: Collection[Context]) -> Context | None:
        """Return which of some contexts was entered last, where the machine knows."""
        return None if self._nests is None else self._nests.innermost(state, contexts)
