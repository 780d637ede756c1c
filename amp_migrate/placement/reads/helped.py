"""The step of a training, and its backward passes, as a function sees them that leaves one or the other to helpers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.indirect import indirect
from amp_migrate.project import Function
from amp_migrate.project.order import inside, loop_of
from amp_migrate.project.reach import calls_to, upwards
from amp_migrate.project.rounds import graph_of, last_before
from amp_migrate.training.steps import Step, outermost_anchor


@dataclass(frozen=True, eq=False, slots=True)
class Helped:
    """A step, which may be the call of a helper that steps, and the backward before it in its round, or the call of one that runs it.

    `backward` is None where only callers of the function run one. `alone`: its unit steps at one place only.
    """

    step: Step
    backward: ast.AST | None
    alone: bool


def helped(unit: Unit) -> Iterator[Helped]:
    """Yield the steps of a unit in the functions that leave them, or the backward before them, to helpers.

    There are none where a unit has gradients that it keeps apart: what clears some there may not mean those of the step.
    """
    if unit.beside or unit.probes:
        return
    places: dict[ast.stmt, list[Step]] = {}
    for step in unit.live_steps():
        places.setdefault(outermost_anchor(step), []).append(step)
    for steps in places.values():
        alone = len(places) == 1
        above = upwards(unit.project, steps[0].function)
        for function in (f for f in unit.project.functions() if f in above):
            here = function is steps[0].function
            for step in steps[:1] if here else _taken(unit, function, steps):
                backward = _before(unit, step, called_only=here)
                if backward is not None or not here:
                    yield Helped(step, backward, alone)


def _taken(unit: Unit, function: Function, steps: list[Step]) -> list[Step]:
    """Return the steps that a function takes through calls of a helper that always steps, each the only one of its loop."""
    project = unit.project
    calls = calls_to(project, function, {step.function for step in unit.live_steps()})
    own = calls_to(project, function, {steps[0].function})
    seen = {e.site.call: e.seen for e in indirect(unit, function) if e.site.call in own}
    if list(seen) != own or not _always(unit, steps[0].function, [s.call for s in steps]):
        return []
    loops = [loop_of(function.module.tree, call) for call in calls]
    return [
        step for call, step in seen.items() if loops.count(loop_of(function.module.tree, call)) == 1
    ]


def _always(unit: Unit, function: Function, nodes: list[ast.Call]) -> bool:
    """Tell whether a function comes to one of some nodes whenever it runs."""
    graph = graph_of(unit.project, function)
    points = [point for node in nodes for point in graph.within(node)]
    return graph.order(exceptions=False).must_reach(graph.entry, points)


def _before(unit: Unit, step: Step, *, called_only: bool) -> ast.AST | None:
    """Return what runs the backward before a step in its round; with `called_only` only a helper will do."""
    loop = loop_of(step.tree, step.anchor)
    if loop is None and step.function.node is None:
        return None
    live = unit.live_backwards()
    own = [b.node for b in live if b.function is step.function]
    called = calls_to(unit.project, step.function, {b.function for b in live})
    if (called_only and own) or step.call in called:
        return None
    nodes = [n for n in (*own, *called) if loop is None or inside(step.tree, n, loop)]
    found = last_before(unit.project, step.function, nodes, step.call)
    return found[-1] if found else None
