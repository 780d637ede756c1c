"""Programs that Apex has no part in: modules that run by themselves, and trainings that nothing with Apex leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amp_migrate.check.apex.initialized import Initialized
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Side
from amp_migrate.facts.closure import closure
from amp_migrate.project import Function
from amp_migrate.training.contexts import scaling_calls


def programs_apart(side: Side, apex: Initialized, begin: Iterable[Function]) -> Iterator[Function]:
    """Yield the functions that begin programs without Apex: of those that nothing calls, the ones that run a plain backward.

    `begin` are the functions that nothing calls, and that lead to no initialize.
    """
    scaling, calls = scaling_calls(side.project).keys(), side.program.calls
    reached = set(closure(filter(apex.leads, side.project.functions()), side.onward))
    for function in begin:
        if function.node is None:
            yield function
        elif function not in reached and next(calls.holders(function), None) is None:
            ran = closure([function], side.onward)
            scaled = any(not scaling.isdisjoint(f.calls) for f in ran)
            if not scaled and any(True for f in ran for _ in side.of_kind(f, Does.BACKWARD)):
                yield function
