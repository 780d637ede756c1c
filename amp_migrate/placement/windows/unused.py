"""Backward passes whose gradients no step takes: what clears them comes first on every way, as behind an attack."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial

from amp_migrate.facts.paths import root, stored
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing, clears
from amp_migrate.placement.windows.same_object import known_of_object
from amp_migrate.placement.windows.uses import Place, Uses
from amp_migrate.project import Function
from amp_migrate.project.order import inside
from amp_migrate.project.rounds import points_of, runs_before
from amp_migrate.training.steps import Backward, Step, is_one, visited_around


def unused(unit: Unit, moved: Iterable[ast.stmt] = ()) -> Iterator[Place]:
    """Yield the scaled backward passes whose gradients are cleared before any step; of a shared helper, the call of it.

    What clears in a statement of `moved` does not, as that will stand behind the step.
    """
    if unit.plain or not unit.steps:
        return
    for backward in unit.live_backwards():
        if backward.scaled:
            uses = Uses(unit, set(_clears_others(unit, backward)), set(moved))
            end = points_of(unit.project, backward.function, backward.node)[-1:]
            yield from uses.lost(backward.function, end, (backward.module, backward.node))


def left_out(unit: Unit, moved: Iterable[ast.stmt] = ()) -> Iterator[tuple[Backward, Function]]:
    """Yield the scaled backward passes whose gradients some way clears past their one step, and some way does not.

    The end of a generator is such a way, too.

    Each has the function in which they are cleared. A test that counts micro-batches leaves out nothing, as its step is for several.
    """
    if unit.plain:
        return
    for backward in unit.live_backwards():
        steps = _taking(unit, backward) if backward.scaled else []
        if not steps:
            continue
        others: set[ast.AST] = set(_clears_others(unit, backward))
        if len(steps) < len(unit.steps):
            others |= set(_clears_unlike(unit, backward))
        uses = Uses(unit, others, set(moved), steps)
        end = points_of(unit.project, backward.function, backward.node)[-1:]
        known = known_of_object(unit.project, backward.function, backward.node)
        where = uses.passes(backward.function, end, known=known)
        if where is not None or _is_yielded(unit, backward, steps):
            yield backward, where or backward.function


def _is_yielded(unit: Unit, backward: Backward, steps: list[Step]) -> bool:
    """Tell whether a generator may end between a backward and its step, where nobody goes through it any further."""
    function, runs = backward.function, partial(runs_before, unit.project, backward.function)
    yields = [n for n in function.own_nodes if isinstance(n, ast.Yield | ast.YieldFrom)]
    own = [step for step in steps if step.function is function]
    between = (y for y in yields if runs(backward.node, y) and any(runs(y, s.call) for s in own))
    return any(between) and any(clears(node) for node in function.calls)


def _taking(unit: Unit, backward: Backward) -> list[Step]:
    """Return the steps of the optimizers of a backward; none where those of another one may be among them."""
    named = backward.optimizers
    own = [s for s in unit.steps if not named or any(_is_one(unit, backward, o, s) for o in named)]
    others = (step for step in unit.steps if step not in own)
    apart = all(_is_apart(unit, backward, o, step) for step in others for o in named)
    return own if apart else []


def _is_one(unit: Unit, backward: Backward, optimizer: ast.expr, step: Step) -> bool:
    return is_one(unit.project, backward.module, optimizer, step.optimizer)


def _is_apart(unit: Unit, backward: Backward, optimizer: ast.expr, step: Step) -> bool:
    """Tell whether a step is known to be of another object than an optimizer of a backward."""
    group = unit.project.values.group
    own, other = group(backward.module, optimizer), group(step.module, step.optimizer)
    return own is not None and other is not None and own != other


def _clears_unlike(unit: Unit, backward: Backward) -> Iterator[ast.AST]:
    """Yield what is not known to clear the gradients of the optimizers of a backward, which is one of several."""
    group, named = unit.project.values.group, backward.optimizers
    own = {group(backward.module, optimizer) for optimizer in named} - {None}
    for function in unit.project.functions():
        for node in clearing(unit.project).of_parameters(function):
            called = node.func if isinstance(node, ast.Call) else None
            receiver = called.value if isinstance(called, ast.Attribute) else None
            if receiver is None or not clears(node) or group(function.module, receiver) not in own:
                yield node


def _clears_others(unit: Unit, backward: Backward) -> Iterator[ast.AST]:
    """Yield the ``zero_grad()`` of the optimizers that step beside a backward and are not fed by it, as in other rounds of a loop over them."""
    module, function = backward.module, backward.function
    visiting = visited_around(unit.project, backward)
    for node in function.calls:
        if clears(node) and isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            if visiting is not None and inside(module.tree, node, visiting):
                if root(receiver) in stored(visiting.target):
                    yield from (node, visiting)
                    continue
            own = any(is_one(unit.project, module, o, receiver) for o in backward.optimizers)
            steps = unit.steps_of(function)
            if not own and any(is_one(unit.project, module, s.optimizer, receiver) for s in steps):
                yield node
