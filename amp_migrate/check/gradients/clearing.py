"""Gradients that a rule of the run says it clears behind every step: that is all that it changes."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from amp_migrate.check.events.claims import Allowed
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Side
from amp_migrate.check.events.traces import Automaton, Difference, Label, Step, difference
from amp_migrate.facts.mark import Mark
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place

_STALE = "used again, as nothing clears them behind the step:"
_LOST = "cleared before the step:"


class Holds(Mark):
    """What the gradients of an optimizer are in a function."""

    BEGUN = "what they were when it began"
    CLEARED = "cleared"
    ADDED = "what a backward added"
    STEPPED = "used"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Clearing:
    """An optimizer or network whose gradients are cleared at other times, by the labels of the function.

    `steps` are the labels of its steps, `lines` those of the claims. `calls` are the kinds of events to which the calls of
    the function lead.
    """

    cleared: frozenset[str]
    steps: frozenset[str]
    lines: frozenset[int]
    calls: Mapping[str, Collection[str]]

    def move(self, state: Holds, label: Label) -> Holds:
        """Return what an event makes of a state."""
        if label.kind == Does.CLEAR.value and label.of in self.cleared:
            return Holds.CLEARED
        if label.kind == Does.STEP.value and label.of in self.steps:
            return Holds.STEPPED
        if label.kind == Does.BACKWARD.value:
            return state if state is Holds.UNKNOWN else Holds.ADDED
        if label.kind == Does.CALL.value:
            return self._called(state, self.calls.get(label.of, ()))
        return Holds.UNKNOWN if label.kind == Does.READ.value and label.of[-1:] == "=" else state

    def _called(self, state: Holds, kinds: Collection[str]) -> Holds:
        found = {Does(kind) for kind in kinds} & {Does.CLEAR, Does.STEP, Does.BACKWARD}
        if found == {Does.BACKWARD}:
            return state if state is Holds.UNKNOWN else Holds.ADDED
        return Holds.UNKNOWN if found else state

    def claimed(self, label: Label, place: Place) -> bool:
        """Tell whether an event of the old text is one of those that a rule takes away."""
        return self._clears(label) and place.line in self.lines

    def _clears(self, label: Label) -> bool:
        return label.kind == Does.CLEAR.value and label.of in self.cleared

    def difference(
        self, old: Automaton, new: Automaton, kinds: Collection[str]
    ) -> Difference | None:
        """Return what the new text clears at other times than a rule says: the claimed ones go, one follows every step.

        Events of some other kinds tell the ways apart.
        """
        was, now = _Course(self, old, before=True), _Course(self, new)
        for name in (_STALE, _LOST) if len(self.steps) == 1 else ():
            if name in now.wrong and name not in was.wrong:
                label = Label(f"the gradients of `{min(self.cleared)}` are {name}")
                return Difference((Step(label, None, now.wrong[name]),))
        return difference(was.made, now.made, lambda x: x.kind in kinds or self._clears(x))


class _Course:
    """The automaton of one side with what gradients are at each state; what is cleared behind a step has no label.

    `before`: in the old text the claimed ones are taken away, and one follows every step.
    """

    def __init__(self, clearing: Clearing, given: Automaton, before: bool = False) -> None:
        self._clearing = clearing
        self._given = given
        self._before = before
        self._states: dict[tuple[int, Holds], int] = {}
        self._queue: deque[tuple[int, Holds]] = deque()
        self.made = Automaton()
        self.wrong: dict[str, Place] = {}
        begins = [self._state(start, Holds.BEGUN) for start in given.starts]
        self.made.starts.extend(begins)
        self._ends: dict[Holds, Place] = {}
        self._begins_backward = False
        while self._queue:
            self._onward(*self._queue.popleft())
        if self._begins_backward and Holds.STEPPED in self._ends:
            self.wrong.setdefault(_STALE, self._ends[Holds.STEPPED])

    def _state(self, state: int, holds: Holds) -> int:
        if (state, holds) not in self._states:
            self._states[state, holds] = self.made.state()
            self._queue.append((state, holds))
        return self._states[state, holds]

    def _onward(self, state: int, holds: Holds) -> None:
        source = self._states[state, holds]
        for label, place, target in self._given.moves[state]:
            then, kept = holds, label
            if label is not None:
                then, kept = self._after(holds, label, place)
            self.made.move(source, kept, place, self._state(target, then))

    def _after(self, holds: Holds, label: Label, place: Place) -> tuple[Holds, Label | None]:
        """Return what gradients are behind an event, and the event, None for one that a rule may move."""
        clearing = self._clearing
        if self._before and clearing.claimed(label, place):
            return holds, None
        then = clearing.move(holds, label)
        self._blame(holds, then, label, place)
        if then is Holds.CLEARED and holds is not Holds.ADDED and holds is not then:
            return then, None
        if holds is then is Holds.CLEARED and label.kind == Does.CLEAR.value:
            return then, None
        return Holds.CLEARED if self._before and then is Holds.STEPPED else then, label

    def _blame(self, holds: Holds, then: Holds, label: Label, place: Place) -> None:
        if label.kind == Does.END.value:
            self._ends.setdefault(holds, place)
        if holds is Holds.STEPPED and then is Holds.ADDED:
            self.wrong.setdefault(_STALE, place)
        if holds is Holds.BEGUN and then is Holds.ADDED:
            self._begins_backward = True
        if holds is Holds.CLEARED and then is Holds.STEPPED:
            self.wrong.setdefault(_LOST, place)


def clearings(
    side: Side, functions: Collection[Function], allowed: Allowed, kinds: Mapping[str, set[str]]
) -> Iterator[Clearing]:
    """Yield what some functions of the old text clear where rules of the run say that they move it.

    What a loop goes over is left out, as each round clears another one.
    """
    found = [(label, line, own) for f in functions for label, line, own in _events(side, f)]
    over = {name for f in functions for name in _gone_over(f)}
    for name in sorted({label.of for label, line, _ in found if line in allowed.clearing}):
        if name.partition(".")[0].partition("[")[0] in over:
            continue
        of = frozenset[int]().union(*(own for label, _, own in found if label.of == name))
        alike = [label for label, _, own in found if label.of == name or own & of]
        cleared, steps = (
            frozenset(label.of for label in alike if label.kind == kind.value)
            for kind in (Does.CLEAR, Does.STEP)
        )
        yield Clearing(cleared | {name}, steps, allowed.clearing, kinds)


def _events(side: Side, function: Function) -> Iterator[tuple[Label, int, frozenset[int]]]:
    """Yield what a function steps and clears, each with its line and the numbers of the optimizers."""
    events = side.program.training.of(function)
    for call, label in side.of_kind(function, Does.CLEAR, Does.STEP):
        numbers = (e.optimizers or frozenset() for e in events.get(call, ()))
        yield label, call.lineno, frozenset[int]().union(*numbers)


def _gone_over(function: Function) -> Iterator[str]:
    loops = (n for n in function.all_nodes if isinstance(n, ast.For | ast.comprehension))
    return (n.id for loop in loops for n in ast.walk(loop.target) if isinstance(n, ast.Name))
