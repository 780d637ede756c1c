"""The sequences of events that the paths of a function give, as a finite automaton, and where two of them part."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from amp_migrate.facts.closure import closure
from amp_migrate.protocol.faults import Place, Trouble


class Label(NamedTuple):
    """What happens, as either side writes it: the kind of the event, and what it concerns."""

    kind: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.of}".rstrip()


@dataclass
class Automaton:
    """States by number; each has its moves, a label with a place or None for none, and where it leads."""

    moves: list[list[tuple[Label | None, Place, int]]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def state(self) -> int:
        """Add a state and return its number."""
        self.moves.append([])
        return len(self.moves) - 1

    def move(self, source: int, label: Label | None, place: Place, target: int) -> None:
        """Add a move."""
        self.moves[source].append((label, place, target))

    def ending(self, last: int) -> Automaton:
        """Return the automaton without the ways that do not lead to a state, if any does."""
        into: dict[int, list[int]] = {}
        for source, moves in enumerate(self.moves):
            for _, _, target in moves:
                into.setdefault(target, []).append(source)
        living = set(closure([last], lambda state: into.get(state, ())))
        if not living & set(self.starts):
            return self
        kept = [[move for move in moves if move[2] in living] for moves in self.moves]
        return Automaton(kept, self.starts)

    def labels(self) -> dict[Label, Place]:
        """Return the labels on the ways from its starts, each with a place."""
        found: dict[Label, Place] = {}
        seen = set(self.starts)
        queue = list(seen)
        for state in queue:
            for label, place, target in self.moves[state]:
                if label is not None:
                    found.setdefault(label, place)
                if target not in seen:
                    seen.add(target)
                    queue.append(target)
        return found


class Step(NamedTuple):
    """An event of both sides, with a place in each text that shows it; one side has none where they part."""

    label: Label
    old: Place | None
    new: Place | None


@dataclass(frozen=True)
class Difference:
    """A shortest sequence of events that one side can take and the other cannot; its last step is of one side.

    `trouble` is what goes wrong there.
    """

    steps: tuple[Step, ...]
    trouble: Trouble = Trouble.GRADIENTS


class Deterministic:
    """The subset construction over an automaton, made as far as it is asked for."""

    def __init__(self, automaton: Automaton, keeps: Callable[[Label], bool]) -> None:
        self._automaton = automaton
        self._keeps = keeps
        self._steps: dict[frozenset[int], dict[Label, tuple[Place, frozenset[int]]]] = {}

    @property
    def start(self) -> frozenset[int]:
        """The states before the first event."""
        return self._closed(self._automaton.starts)

    def _closed(self, states: Iterable[int]) -> frozenset[int]:
        seen = set(states)
        queue = list(seen)
        while queue:
            for label, _, target in self._automaton.moves[queue.pop()]:
                if target not in seen and (label is None or not self._keeps(label)):
                    seen.add(target)
                    queue.append(target)
        return frozenset(seen)

    def steps(self, states: frozenset[int]) -> dict[Label, tuple[Place, frozenset[int]]]:
        """Return the events that may come next, with a place and the states behind each."""
        if states not in self._steps:
            reached: dict[Label, set[int]] = {}
            places: dict[Label, Place] = {}
            for state in sorted(states):
                for label, place, target in self._automaton.moves[state]:
                    if label is not None and self._keeps(label):
                        reached.setdefault(label, set()).add(target)
                        places.setdefault(label, place)
            self._steps[states] = {
                label: (places[label], self._closed(targets)) for label, targets in reached.items()
            }
        return self._steps[states]


def difference(
    old: Automaton,
    new: Automaton,
    keeps: Callable[[Label], bool] = lambda label: True,
    within: bool = False,
) -> Difference | None:
    """Return where two automata part, None where they give the same sequences of the events that `keeps` takes.

    With `within`, what the old one alone can do is no difference.
    """
    before, after = Deterministic(old, keeps), Deterministic(new, keeps)
    start = before.start, after.start
    came: dict[
        tuple[frozenset[int], frozenset[int]],
        tuple[tuple[frozenset[int], frozenset[int]], Step] | None,
    ] = {start: None}
    queue = deque([start])
    while queue:
        pair = queue.popleft()
        ahead, behind = before.steps(pair[0]), after.steps(pair[1])
        for label in sorted({*ahead, *behind}):
            one, other = ahead.get(label), behind.get(label)
            step = Step(label, one[0] if one else None, other[0] if other else None)
            if other is None and within:
                continue
            if one is None or other is None:
                return Difference(_way(came, pair, step))
            then = one[1], other[1]
            if then not in came:
                came[then] = pair, step
                queue.append(then)
    return None


def _way(
    came: dict[
        tuple[frozenset[int], frozenset[int]],
        tuple[tuple[frozenset[int], frozenset[int]], Step] | None,
    ],
    pair: tuple[frozenset[int], frozenset[int]],
    last: Step,
) -> tuple[Step, ...]:
    steps = [last]
    at = came[pair]
    while at is not None:
        pair, step = at
        steps.append(step)
        at = came[pair]
    return tuple(reversed(steps))
