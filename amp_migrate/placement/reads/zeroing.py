"""Where gradients are zeroed, relative to the backward and the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.facts.paths import stored
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.reads.helped import helped
from amp_migrate.placement.windows.counting import Asked, counts, is_over, leaves_some
from amp_migrate.placement.windows.course import Course
from amp_migrate.placement.windows.surviving import lost
from amp_migrate.project import Module
from amp_migrate.project.order import in_branch, inside, loop_of, position
from amp_migrate.project.reach import calls_to, reachable, upwards
from amp_migrate.project.rounds import last_before, runs_before
from amp_migrate.training.region import Region
from amp_migrate.training.steps import Backward, Step, is_one, outermost_anchor, waiting, waits_by


@dataclass(frozen=True, eq=False, slots=True)
class Zeroing:
    """A ``zero_grad()`` that runs on every micro-batch of a step; `repeated`: the boundary has one already."""

    module: Module
    statement: ast.stmt
    step: Step
    repeated: bool


def is_zero_grad(stmt: ast.stmt) -> bool:
    """Tell whether a statement is ``x.zero_grad()``."""
    return (
        isinstance(stmt, ast.Expr)
        and isinstance(stmt.value, ast.Call)
        and isinstance(stmt.value.func, ast.Attribute)
        and stmt.value.func.attr == "zero_grad"
    )


class Window(NamedTuple):
    """A step that waits for several micro-batches: the backward that runs last before it, and the test that counts them."""

    step: Step
    backward: Backward
    limit: ast.If


def windows(unit: Unit) -> Iterator[Window]:
    """Yield the windows of accumulation, by their steps."""
    for step in unit.steps:
        backward, limit = _window_of(unit, step)
        if backward is not None and limit is not None and counts(unit, step.function, limit.test):
            yield Window(step, backward, limit)


def begins_empty(unit: Unit, window: Window) -> bool:
    """Tell whether another test that counts clears gradients before the first backward of a window."""
    function = window.step.function
    return any(
        isinstance(up, ast.If) and up is not window.limit and counts(unit, function, up.test)
        for node in clearing(unit.project).nodes(function)
        if runs_before(unit.project, function, node, window.backward.node)
        for up in window.step.tree.ancestors(node)
    )


def _window_of(unit: Unit, step: Step) -> tuple[Backward | None, ast.If | None]:
    """Return the backward that runs last before a step that stays, and the test by which that waits for several."""
    called = step.function.node is not None
    backward = backward_before(unit, step, called) if step.call not in unit.gone else None
    return backward, _waits_by(unit, step, backward.node) if backward is not None else None


def _waits_by(unit: Unit, step: Step, backward: ast.AST) -> ast.If | None:
    """Return the test by which a step waits, where nothing else steps its optimizer the other way."""
    if waits_by(step, backward) is None:
        return None
    return waits_by(step, backward, Course(unit, step.function).alike(step))


def every_micro_batch(unit: Unit) -> Iterator[Zeroing]:
    """Yield the zero_grad statements beside a backward whose step waits for several micro-batches.

    Each has the last step of its boundary. A zero_grad behind another backward clears what that one gave, and one
    in a function with a backward that stays plain keeps its gradients apart.
    """
    found: dict[ast.stmt, Zeroing] = {}
    apart = {b.function for b in [*unit.beside, *unit.probes]}
    for step, limit in _waiting(unit):
        if step.function in apart or steps_beside(unit, step, limit):
            continue
        if is_over(unit, step.function, limit):  # what stands beside it runs once for all of them
            continue
        parts = (part for stmt in (limit, *waiting(step, limit)) for part in ast.walk(stmt))
        inner = any(is_zero_grad(s) for s in parts if isinstance(s, ast.stmt))
        inner = inner or clearing(unit.project).calls(step.call)
        for stmt in step.tree.block(limit):
            if unit.trains(step.module, stmt):
                break
            if is_zero_grad(stmt) and loop_of(step.tree, stmt) is loop_of(step.tree, limit):
                found[stmt] = Zeroing(step.module, stmt, step, inner)
    yield from found.values()


def _waiting(unit: Unit) -> Iterator[tuple[Step, ast.If]]:
    """Yield the steps that wait for several micro-batches, those by helpers included, with the tests that count."""
    yield from ((step, limit) for step, _, limit in windows(unit))
    for item in helped(unit):
        limit = waits_by(item.step, item.backward)
        if limit is not None and counts(unit, item.step.function, limit.test):
            yield item.step, limit


def steps_beside(unit: Unit, step: Step, limit: ast.If) -> bool:
    """Tell whether another optimizer steps in rounds in which one does not: what accumulated for it, `update()` would change."""
    loop, together = loop_of(step.tree, limit), waiting(step, limit)
    return any(
        loop_of(step.tree, other.call) is loop
        and not in_branch(step.tree, other.call, together)
        and not is_one(unit.project, step.module, other.optimizer, step.optimizer)
        for other in unit.steps_of(step.function)
    )


def lost_windows(unit: Unit, mended: bool) -> dict[ast.AST, ast.If | None]:
    """Return the backward passes whose gradients every further one clears, with the test that steps after several.

    Only those of the last micro-batch of a window are stepped. `mended`: what `every_micro_batch` finds will be moved.
    Where a helper steps there is no test.
    """
    moved = {z.step.anchor for z in every_micro_batch(unit)} if mended else set()
    found: dict[ast.AST, ast.If | None] = {}
    for step in unit.steps:
        backward, limit = _window_of(unit, step)
        if backward is None or backward.node in found:
            continue
        calls = [s.call for s in unit.steps_of(step.function)]
        waits = _is_matched(step, backward)
        if limit is not None:
            stays = not any(in_branch(step.tree, a, waiting(step, limit)) for a in moved)
            waits = stays and counts(unit, step.function, limit.test)
        if waits and lost(unit, step.function, backward.node, calls):
            found[backward.node] = limit
    for backward in unit.backwards:
        if backward.node not in unit.gone and _is_lost_in_a_helper(unit, backward, moved):
            found.setdefault(backward.node, None)
    return found


def _is_matched(step: Step, backward: Backward) -> bool:
    """Tell whether a step stands in a case of a ``match`` that its backward is no part of."""
    above = step.tree.ancestors(step.call)
    return any(
        isinstance(up, ast.Match) and not inside(step.tree, backward.node, up) for up in above
    )


def _is_lost_in_a_helper(unit: Unit, backward: Backward, moved: set[ast.stmt]) -> bool:
    """Tell whether a function leaves its backward or the steps to what it calls, and gradients are lost between them."""
    stepping = {step.function for step in unit.steps}
    for function in upwards(unit.project, backward.function):
        training = calls_to(unit.project, function, {backward.function})
        steps, here = unit.steps_of(function), function is backward.function
        waits = not here and all(_waits(unit, s, node) for s in steps for node in training)
        taken = [*(s.call for s in steps), *calls_to(unit.project, function, stepping)]
        moves = any(function.module.tree.statement(call) in moved for call in taken)
        if moves or (steps and not waits):
            continue
        runs = [call for call in training if call not in taken]
        own: list[ast.AST] = [backward.node]
        if taken and any(lost(unit, function, n, taken) for n in (own if here else runs)):
            return True
        stays = [s for s in unit.steps_of(backward.function) if s.anchor not in moved]
        late = bool(stays) and all(_waits(unit, s, backward.node, leaves_some) for s in stays)
        for call in training if late and stepping == {backward.function} else ():
            if lost(unit, function, call, [other for other in taken if other is not call]):
                return True
    return False


def _waits(unit: Unit, step: Step, training: ast.AST, asked: Asked = counts) -> bool:
    """Tell whether a step waits for several runs of what trains in its round, by a test of which that is `asked`."""
    limit = _waits_by(unit, step, training)
    return limit is not None and asked(unit, step.function, limit.test)


def backward_before(unit: Unit, step: Step, called: bool = False) -> Backward | None:
    """Return the backward of its loop that runs last before a step in a round; `called`: or of its function, outside of loops."""
    loop = loop_of(step.tree, step.anchor)
    if loop is None and not called:
        return None
    found = {
        b.node: b
        for b in unit.backwards_of(step.function)
        if b.node not in unit.gone and (loop is None or inside(step.tree, b.node, loop))
    }
    nodes = last_before(unit.project, step.function, found, step.call)
    return found[nodes[-1]] if nodes else None


def in_region(region: Region) -> list[ast.stmt]:
    """Return the zero_grad statements that stand between the forward and the last statement of the loss."""
    tree = region.module.tree
    first = position(tree, region.first)
    return [
        s for s in tree.block(region.first)[first:] if s in region.statements() and is_zero_grad(s)
    ]


def before_step(unit: Unit) -> Iterator[Zeroing]:
    """Yield the zero_grad statements that stand between the backward and the step of one iteration."""
    for step in unit.steps:
        backward = backward_before(unit, step, called=step.function.node is not None)
        anchor = outermost_anchor(step)
        own = unit.steps_of(step.function)
        alone = all(outermost_anchor(s) is anchor for s in own) and step is own[0]
        if step.call in unit.gone or not alone:
            continue
        if backward is not None:
            yield from _cleared_between(unit, step, backward.node)
        elif _is_fed_by_callers(unit, step):
            yield from _cleared_first(step)
    for item in helped(unit):
        yield from _cleared_between(unit, item.step, item.backward)


def _cleared_between(unit: Unit, step: Step, backward: ast.AST) -> Iterator[Zeroing]:
    """Yield the zero_grad statements of the block of a step that run behind a backward of its round."""
    anchor = outermost_anchor(step)
    for stmt in step.tree.block(anchor)[: position(step.tree, anchor)]:
        alike = loop_of(step.tree, backward) is loop_of(step.tree, stmt)
        if is_zero_grad(stmt) and alike and not _trains_between(unit, step, stmt):
            if runs_before(unit.project, step.function, backward, stmt):
                yield Zeroing(step.module, stmt, step, False)


def _is_fed_by_callers(unit: Unit, step: Step) -> bool:
    """Tell whether a function that runs no backward steps on gradients of its callers."""
    function, project = step.function, unit.project
    running = {b.function for b in unit.backwards}
    if not running.isdisjoint(reachable(project, function)):
        return False
    return any(
        runs_before(project, site.function, backward.node, site.call)
        for site in project.callers(function)
        for backward in unit.backwards_of(site.function)
    )


def _cleared_first(step: Step) -> Iterator[Zeroing]:
    """Yield the zero_grad statements of the block of a step that a function runs before it."""
    anchor = outermost_anchor(step)
    for stmt in step.tree.block(anchor)[: position(step.tree, anchor)]:
        if is_zero_grad(stmt):
            yield Zeroing(step.module, stmt, step, False)


def after_some_steps(unit: Unit) -> Iterator[tuple[Step, ast.If]]:
    """Yield the steps whose gradients are cleared behind them under a test alone, and stay otherwise, with the test."""
    found = clearing(unit.project)
    for step in unit.live_steps():
        anchor = outermost_anchor(step)
        block = step.tree.block(anchor)
        behind = block[position(step.tree, anchor) + 1 :]
        tests = [s for s in behind if isinstance(s, ast.If) and not s.orelse]
        nodes = list(found.nodes(step.function)) if tests else []
        for test in tests:
            clears_all = all(any(inside(step.tree, n, s) for n in nodes) for s in test.body)
            if clears_all and Course(unit, step.function).kept(anchor, []):
                yield step, test


def leaves_first(step: Step, test: ast.If) -> bool:
    """Tell whether a test spares the first iteration of its loop alone: ``if i > 0``."""
    loop = loop_of(step.tree, test)
    compare = test.test
    if not isinstance(loop, ast.For | ast.AsyncFor) or not isinstance(compare, ast.Compare):
        return False
    counters = stored(loop.target)
    given = (type(compare.ops[0]), getattr(compare.comparators[0], "value", None))
    return (
        isinstance(compare.left, ast.Name)
        and compare.left.id in counters
        and len(compare.ops) == 1
        and given in ((ast.Gt, 0), (ast.GtE, 1), (ast.NotEq, 0))
    )


def _trains_between(unit: Unit, step: Step, stmt: ast.stmt) -> bool:
    """Tell whether a backward runs between a zero_grad and the step, maybe in a helper."""
    block = step.tree.block(stmt)
    end = position(step.tree, outermost_anchor(step))
    between = block[position(step.tree, stmt) + 1 : end]
    return any(unit.trains(step.module, part) for part in between)
