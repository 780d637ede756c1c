"""Which functions a call runs at a moment, as far as what is known there tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.flow.assumption import Assumption
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.run.matter import Matter
from amp_migrate.protocol.run.memory import Memory
from amp_migrate.protocol.run.runs import Here

Run = tuple[Function | None, Assumption]
"""What a call may run, None for what does nothing to the state, and what is known of its object then."""

_MOST = 32  # classes that the object of one call is told apart by, where what is forgotten loses no path


class Dispatch:
    """Answers once for all states of the machine, asleep or not, in which a path that knows the same comes to a call.

    What a file holds that the programs of the span do not run is called by none.
    """

    def __init__(self, program: Program, memory: Memory, matter: Matter, span: Span) -> None:
        self._program = program
        self._memory = memory
        self._matter = matter
        self._span = span
        self._found: dict[tuple[Point, Assumption, bool], tuple[Run, ...]] = {}

    def of(self, caller: Function, here: Here, call: ast.Call) -> tuple[Run, ...]:
        """Return what a call may run at a moment of a function."""
        asked = here.point, here.state.known, self._matter.asleep(here.state.machine)
        if asked not in self._found:
            self._found[asked] = tuple(dict.fromkeys(self._runs(caller, call, *asked)))
        return self._found[asked]

    def _runs(
        self, caller: Function, call: ast.Call, point: Point, known: Assumption, asleep: bool
    ) -> Iterator[Run]:
        raises = self._memory.course.raises(caller, point)
        followed = self._program.relevant if raises else self._matter.of(asleep)
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        near = self._span.near(self._program.calls.of(call))
        if not near:
            yield None, known
            return
        chosen = [(cls, run) for cls, run in self._program.methods(call) if run in near]
        if receiver is None or len(chosen) < 2:
            for function in self._memory.of_name(call, near, known):
                yield (function if function in followed else None), known
            return
        told = [(self._memory.of_class(receiver, cls, known), run) for cls, run in chosen]
        apart = {refined for refined, _ in told if refined is not None}
        together = len(apart) > _MOST and self._memory.forgets
        for refined, function in told:
            if refined is not None:
                run = function if function in followed else None
                yield run, known if together else refined
