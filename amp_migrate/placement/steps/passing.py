"""Steps that may be left out behind an `unscale_`, here or in what is called: `update()` follows the test around them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from amp_migrate.flow.cfg.subject import Fork
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.steps.shared import Shared
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.skipped import accumulates
from amp_migrate.project import Function
from amp_migrate.project.order import inside, levels
from amp_migrate.project.reach import calls_to
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.steps import Step, boundary


def anchored(unit: Unit, steps: Iterable[Step], unscales: Sequence[Unscale]) -> list[Step]:
    """Return steps with what `update()` follows: the test around one that gradients are unscaled outside of."""
    tests = [u.outside for u in unscales if u.outside is not None]
    decided = {u.decided for u in unscales}
    found = []
    for step in steps:
        if step in decided:
            *_, top = levels(step.tree, step.anchor)
            found.append(replace(step, anchor=top))
            continue
        limit = next((t for t in tests if inside(step.tree, step.anchor, t)), None)
        limit = limit or behind_helper(unit, step, unscales)
        found.append(replace(step, anchor=limit) if limit is not None else step)
    return found


def behind_tests(unit: Unit, found: Shared, unscales: Iterable[Unscale]) -> Shared:
    """Add helpers that step: `update()` follows the test around the only call of each, where gradients are unscaled outside of it."""
    stepping = {step.function for step in unit.live_steps()} - found.functions
    for test, function in ((u.outside, u.function) for u in unscales if u.outside is not None):
        tree = function.module.tree
        for call in calls_to(unit.project, function, stepping - {function}):
            helpers = unit.project.callees(call)
            alone = all(h in stepping and len(unit.project.callers(h)) == 1 for h in helpers)
            if alone and inside(tree, call, test) and found.functions.isdisjoint(helpers):
                found.functions.update(helpers)
                step = Step(function.module, function, call, call, test)
                found.calls.setdefault(function, []).append(step)
    return found


def behind_helper(unit: Unit, step: Step, unscales: Iterable[Unscale]) -> Fork | None:
    """Return the test around a step behind a helper that unscales, which may leave it out and keeps no gradients."""
    for call in unscaling(unit, step.function, unscales):
        if runs_before(unit.project, step.function, call, step.call):
            limit = boundary(step, call)
            if limit is not None and not accumulates(unit, step.function, step.anchor, limit):
                return limit
    return None


def unscaling(unit: Unit, function: Function, unscales: Iterable[Unscale]) -> Iterator[ast.Call]:
    """Yield the calls of a function that run others which unscale gradients and take no step."""
    helpers = {u.function for u in unscales if u.reads} - {function}
    yield from calls_to(unit.project, function, helpers) if helpers else ()
