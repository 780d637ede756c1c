"""Exploring the states that points of a graph are reached in, and the shortest ways there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Edge, Point

_STATES = 8
"""How many sets of facts a point tells apart; beyond that it keeps what they have in common, which loses no path."""

_State = tuple[Point, Assumption]
_Steps = Callable[[Point, Assumption], Iterable[tuple[Edge, Assumption]]]


class Exploration:
    """The states that are reached from some, up to points that are avoided.

    States of a point are looked at when all that may come before it were, but for edges that go back: what is
    known there is seldom told apart, or taken together, more than once.
    """

    def __init__(
        self,
        starts: Sequence[_State],
        ranks: Mapping[int, int],
        avoided: frozenset[int] = frozenset(),
    ) -> None:
        self.avoided = avoided
        self.seen: dict[int, list[Assumption]] = {}
        self._starts = starts
        self._ranks = ranks
        self._waiting: list[tuple[int, int, _State]] = []
        self._came = 0
        for state in starts:
            self.come(state)

    def come(self, state: _State) -> None:
        """Note that a state is reached; one that knows more than another at the same point is nothing new."""
        point, facts = state
        seen = self.seen.setdefault(point.index, [])
        if any(facts.implies(other) for other in seen):
            return
        if len(seen) >= _STATES:
            for other in seen:
                facts = facts.common(other)
            seen.clear()
        seen[:] = [other for other in seen if not other.implies(facts)]
        seen.append(facts)
        self._came += 1
        heappush(self._waiting, (self._ranks[point.index], self._came, (point, facts)))

    def next(self) -> _State | None:
        """Take a state to go on from; None where every one was taken, or went into another."""
        while self._waiting:
            state = heappop(self._waiting)[2]
            if state[1] in self.seen[state[0].index]:
                return state
        return None

    def path_to(self, goal: Point, steps: _Steps) -> tuple[Point, ...] | None:
        """Return the points on a shortest way to a point that was reached."""
        parents: dict[_State, _State | None] = dict.fromkeys(map(self._told, self._starts))
        queue = deque(parents)
        while queue:
            state = queue.popleft()
            if state[0] is goal:
                return tuple(reversed([point for point, _ in _back(state, parents)]))
            for edge, known in () if state[0].index in self.avoided else steps(*state):
                onward = self._told((edge.target, known))
                if onward not in parents:
                    parents[onward] = state
                    queue.append(onward)
        return None

    def _told(self, state: _State) -> _State:
        """Return what was made of a state that was reached."""
        point, facts = state
        return point, next(other for other in self.seen[point.index] if facts.implies(other))


def _back(state: _State | None, parents: Mapping[_State, _State | None]) -> Iterator[_State]:
    while state is not None:
        yield state
        state = parents[state]
