"""Where gradients are zeroed, relative to the backward and the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from amp_migrate.facts.below import behind_docstring
from amp_migrate.facts.paths import stored
from amp_migrate.flow.cfg.subject import Fork, is_fork
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.reads.helped import helped
from amp_migrate.placement.windows.counting import (
    Asked,
    is_over,
    leaves_some,
    waits_to_count,
)
from amp_migrate.placement.windows.course import Course
from amp_migrate.placement.windows.surviving import lost
from amp_migrate.project import Module, Project
from amp_migrate.project.order import in_branch, inside, loop_of, position
from amp_migrate.project.reach import calls_to, upwards
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


def only_clears(project: Project, stmt: ast.stmt) -> bool:
    """Tell whether a statement is ``x.zero_grad()``, or a call of functions that do nothing else."""
    if is_zero_grad(stmt):
        return True
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    callees = project.callees(call) if isinstance(call, ast.Call) else []
    bodies = [behind_docstring(f.node) if f.node is not None else [] for f in callees]
    plain = not any(f.node is not None and f.node.decorator_list for f in callees)
    return plain and bool(bodies) and all(body and all(map(is_zero_grad, body)) for body in bodies)


def cleared_in(project: Project, stmt: ast.stmt) -> Iterator[tuple[Module, ast.stmt]]:
    """Yield the ``zero_grad()`` statements of the functions that a statement which only clears calls."""
    call = stmt.value if isinstance(stmt, ast.Expr) and not is_zero_grad(stmt) else None
    for callee in project.callees(call) if isinstance(call, ast.Call) else ():
        if callee.node is not None:
            yield from ((callee.module, s) for s in behind_docstring(callee.node))


def cleared_by(stmt: ast.stmt) -> ast.expr:
    """Return `x` of ``x.zero_grad()``."""
    assert isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call)
    assert isinstance(stmt.value.func, ast.Attribute)
    return stmt.value.func.value


class Window(NamedTuple):
    """A step that waits for several micro-batches: the backward that runs last before it, and the test that counts them."""

    step: Step
    backward: Backward
    limit: Fork


def windows(unit: Unit) -> Iterator[Window]:
    """Yield the windows of accumulation, by their steps."""
    for step in unit.steps:
        backward, limit = _window_of(unit, step)
        if (
            backward is not None
            and limit is not None
            and waits_to_count(unit, step.function, limit)
        ):
            yield Window(step, backward, limit)


def begins_empty(unit: Unit, window: Window) -> bool:
    """Tell whether another test that counts clears gradients before the first backward of a window."""
    function = window.step.function
    return any(
        is_fork(up) and up is not window.limit and waits_to_count(unit, function, up)
        for node in clearing(unit.project).nodes(function)
        if runs_before(unit.project, function, node, window.backward.node)
        for up in window.step.tree.ancestors(node)
    )


def _window_of(unit: Unit, step: Step) -> tuple[Backward | None, Fork | None]:
    """Return the backward that runs last before a step that stays, and the test by which that waits for several."""
    called = step.function.node is not None
    backward = backward_before(unit, step, called) if step.call not in unit.gone else None
    return backward, _waits_by(unit, step, backward.node) if backward is not None else None


def _waits_by(unit: Unit, step: Step, backward: ast.AST) -> Fork | None:
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
        inner = any(only_clears(unit.project, s) for s in parts if isinstance(s, ast.stmt))
        inner = inner or clearing(unit.project).calls(step.call)
        for stmt in step.tree.block(limit):
            if unit.trains(step.module, stmt):
                break
            alike = loop_of(step.tree, stmt) is loop_of(step.tree, limit)
            if alike and only_clears(unit.project, stmt):
                found[stmt] = Zeroing(step.module, stmt, step, inner)
    yield from found.values()


def _waiting(unit: Unit) -> Iterator[tuple[Step, Fork]]:
    """Yield the steps that wait for several micro-batches, those by helpers included, with the tests that count."""
    yield from ((step, limit) for step, _, limit in windows(unit))
    for item in helped(unit):
        if not item.alone or item.backward is None:
            continue
        limit = waits_by(item.step, item.backward)
        if limit is not None and waits_to_count(unit, item.step.function, limit):
            yield item.step, limit


def steps_beside(unit: Unit, step: Step, limit: Fork) -> bool:
    """Tell whether another optimizer steps in rounds in which one does not: what accumulated for it, `update()` would change."""
    loop, together = loop_of(step.tree, limit), waiting(step, limit)
    return any(
        loop_of(step.tree, other.call) is loop
        and not in_branch(step.tree, other.call, together)
        and not is_one(unit.project, step.module, other.optimizer, step.optimizer)
        for other in unit.steps_of(step.function)
    )


def lost_windows(unit: Unit, mended: bool) -> dict[ast.AST, Fork | None]:
    """Return the backward passes whose gradients every further one clears, with the test that steps after several.

    Only those of the last micro-batch of a window are stepped. `mended`: what `every_micro_batch` finds will be moved.
    Where a helper steps there is no test.
    """
    moved = {z.step.anchor for z in every_micro_batch(unit)} if mended else set()
    found: dict[ast.AST, Fork | None] = {}
    for step in unit.steps:
        backward, limit = _window_of(unit, step)
        if backward is None or backward.node in found:
            continue
        calls = [s.call for s in unit.steps_of(step.function)]
        waits = _is_matched(step, backward)
        if limit is not None:
            stays = not any(in_branch(step.tree, a, waiting(step, limit)) for a in moved)
            waits = stays and waits_to_count(unit, step.function, limit)
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


def _waits(unit: Unit, step: Step, training: ast.AST, asked: Asked = waits_to_count) -> bool:
    """Tell whether a step waits for several runs of what trains in its round, by a test of which that is `asked`."""
    limit = _waits_by(unit, step, training)
    return limit is not None and asked(unit, step.function, limit)


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
