"""The way that leads to a moment of a run: its lines, and the places where the state of the machine turned."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from amp_migrate.flow.cfg.points import Kind, Point
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Place
from amp_migrate.protocol.run.runs import Here, Key, Summary

_DEEPEST = 20  # calls into which a way is followed
_MOST = 7  # places in front of the last one that are told
_ENDS = (Kind.EXIT, Kind.YIELD)
_Moment = tuple[Key, Here]


class Turn(NamedTuple):
    """A place at which a state became another one: a call, the entry of a context, or a decorated function."""

    function: Function
    node: ast.AST
    line: int
    before: Hashable
    after: Hashable

    @property
    def place(self) -> Place:
        """Its file and line."""
        return Place(self.function.module.path, self.line)


class Ways:
    """Answers from what a run kept of every function."""

    def __init__(self, program: Program, summaries: Mapping[Key, Summary]) -> None:
        self._program = program
        self._summaries = summaries
        self._turns: dict[_Moment, list[Turn]] = {}
        self._ended: dict[Key, list[Here]] = {}

    def places(self, key: Key, here: Here) -> tuple[Place, ...]:
        """Return the places of the events on one path to a moment; those before its function where it has no others."""
        own = self.lines(key, here)
        if len(own) > 1:
            return own
        before = [turn.place for turn in self.turns(key, here)]
        led = tuple(dict.fromkeys(place for place in before if place != own[0]))
        return (*led[-_MOST:], *own)

    def lines(self, key: Key, here: Here) -> tuple[Place, ...]:
        """Return the places of the events on one path to a moment, from the beginning of its function on."""
        path = key.function.module.path
        lines = [here.point.line]
        for at in self._back(key, here):
            if self._speaks(key.function, at.point) and lines[-1] != at.point.line:
                lines.append(at.point.line)
        return tuple(Place(path, line) for line in reversed(lines[: _MOST + 1]))

    def _speaks(self, function: Function, point: Point) -> bool:
        calls = isinstance(point.node, ast.Call) and bool(self._program.callees(point.node))
        return calls or bool(self._program.events(function, point.node))

    def _back(self, key: Key, here: Here) -> Iterator[Here]:
        """Yield the moments before one, the last of them first."""
        came = self._summaries[key].came
        seen = {here}
        at = came.get(here)
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = came.get(at)

    def turns(self, key: Key, here: Here) -> list[Turn]:
        """Return the turns of the state on one path to a moment, first to last, from where the program begins."""
        found = self._within(key, here)
        seen = {key}
        while True:
            callers = [at for at in self._summaries[key].waiting if at[0] not in seen]
            if not callers:
                return found
            key, here = callers[0]
            seen.add(key)
            found = self._within(key, here) + found

    def _within(self, key: Key, here: Here, depth: int = 0) -> list[Turn]:
        """Return the turns in a function and in what it calls."""
        if (key, here) not in self._turns:
            self._turns[key, here] = []
            self._turns[key, here] = self._turns_of(key, here, depth)
        return self._turns[key, here]

    def _turns_of(self, key: Key, here: Here, depth: int) -> list[Turn]:
        moments = [here, *self._back(key, here)][::-1]
        found: list[Turn] = []
        first = moments[0].state.machine
        if first != key.state.machine and key.function.node is not None:
            node = key.function.node
            found.append(Turn(key.function, node, node.lineno, key.state.machine, first))
        for at, then in pairwise(moments):
            if at.state.machine != then.state.machine:
                found += self._turned(key, at, then.state.machine, depth)
        return found

    def _turned(self, key: Key, at: Here, after: Hashable, depth: int) -> list[Turn]:
        for called in self._called.get((key, at), ()) if depth < _DEEPEST else ():
            for end in self._ends(called):
                inside = self._within(called, end, depth + 1) if end.state.machine == after else []
                if inside:
                    return inside
        return [Turn(key.function, at.point.node, at.point.line, at.state.machine, after)]

    def _ends(self, key: Key) -> list[Here]:
        """Return the moments in which what began with `key` may end, or stop for a while."""
        if key not in self._ended:
            self._ended[key] = [h for h in self._summaries[key].came if h.point.kind in _ENDS]
        return self._ended[key]

    @cached_property
    def _called(self) -> dict[_Moment, list[Key]]:
        """What begins in each moment at which a function waits for another one."""
        found: dict[_Moment, list[Key]] = {}
        for key, summary in self._summaries.items():
            for moment in summary.waiting:
                found.setdefault(moment, []).append(key)
        return found
