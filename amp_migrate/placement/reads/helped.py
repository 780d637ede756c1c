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
    """A step, which may be the call of a helper that steps, and the backward before it in its round, or the call of one that runs it."""

    step: Step
    backward: ast.AST


def helped(unit: Unit) -> Iterator[Helped]:
    """Yield the steps of a unit in the functions that leave them, or the backward before them, to helpers.

    There are none where a unit steps in several places, or has gradients that it keeps apart: what clears some there may not
    mean those of the step.
    """
    steps = unit.live_steps()
    if len({outermost_anchor(step) for step in steps}) != 1 or unit.beside or unit.probes:
        return
    above = upwards(unit.project, steps[0].function)
    for function in (f for f in unit.project.functions() if f in above):
        here = function is steps[0].function
        for step in steps[:1] if here else _taken(unit, function, steps):
            backward = _before(unit, step, called_only=here)
            if backward is not None:
                yield Helped(step, backward)


def _taken(unit: Unit, function: Function, steps: list[Step]) -> list[Step]:
    """Return the step that a function takes through its only call of a helper that always steps."""
    seen = {each.site.call: each.seen for each in indirect(unit, function)}
    calls = calls_to(unit.project, function, {steps[0].function})
    always = _always(unit, steps[0].function, [step.call for step in steps])
    return list(seen.values()) if always and list(seen) == calls and len(calls) == 1 else []


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
