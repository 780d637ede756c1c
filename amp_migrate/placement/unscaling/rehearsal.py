"""Gradients that are read and then cleared without a step: a dry run before training, a pass for the Fisher information."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from amp_migrate.facts.paths import is_place, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clears
from amp_migrate.placement.reads.early import before_step
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.reads.zeroing import is_zero_grad
from amp_migrate.placement.unscaling.taken import taken
from amp_migrate.project import Function
from amp_migrate.project.order import Loop, beside, comes_to, exclusive, inside, levels, position
from amp_migrate.project.reach import calls_to, reachable
from amp_migrate.project.rounds import may_follow, runs_before
from amp_migrate.protocol.code.program import program_of
from amp_migrate.training.events import Kind
from amp_migrate.training.steps import Step, backward_of, children_of


def cleared(unit: Unit, function: Function, use: Use) -> ast.Expr | None:
    """Return the ``optimizer.zero_grad()`` that ends what a read of gradients belongs to; None where a step does.

    `update()` may stand there: nothing in the function holds gradients then that a step takes.
    """
    tree = function.module.tree
    runs = partial(runs_before, unit.project, function)
    steps = [s for s in unit.live_steps(function) if runs(use.node, s.call)]
    zeroing = _next(unit, function, use.statement, steps)
    if zeroing is None or any(isinstance(lv, Loop) for lv in levels(tree, use.statement)):
        return None
    name = cleared_optimizer(function, zeroing)
    named = tree.segment(use.optimizer) if use.optimizer is not None else name
    if named != name or name not in {step.text for step in steps}:
        return None
    if not all(_fed_anew(unit, step, zeroing) for step in steps):
        return None
    if not _always_fed(unit, function, use, zeroing):
        return None
    jumps = (n for n in function.own_nodes if isinstance(n, ast.Return | ast.Raise))
    if any(runs(use.statement, jump, [zeroing]) for jump in jumps):
        return None
    return zeroing


class Reading(NamedTuple):
    """A backward whose gradients are read and then cleared: the statement that runs it, and the optimizer of Apex."""

    backward: ast.stmt
    optimizer: str


def only_read(unit: Unit, function: Function, use: Use) -> Reading | None:
    """Return the backward before a read whose gradients no step takes: what clears them comes first in whatever round.

    `update()` may stand behind the last read then. None where anything between may leave, step or train.
    """
    tree = function.module.tree
    found = _trained_before(unit, function, use.statement)
    if found is None or not _runs(unit, function, found[0]):
        return None
    trained, top = found
    own = [b for b in unit.backwards_of(function) if inside(tree, b.node, trained)]
    scaled = [b for b in own if b.scaled]
    alone = all(b.scaled or exclusive(tree, b.node, s.node) for b in own for s in scaled)
    names = {_place(tree, o) for b in scaled for o in b.optimizers}
    name = names.pop() if len(names) == 1 and alone else None
    named = _place(tree, use.optimizer) if use.optimizer is not None else name
    block = tree.block(top)
    between = block[position(tree, trained) + 1 : position(tree, top) + 1]
    if name is None or named != name or any(map(_acts_or_leaves, between)):
        return None
    moved = {zeroing.statement for zeroing in before_step(unit)}
    ends = [
        node
        for node in function.own_nodes
        if isinstance(node, ast.Expr) and is_zero_grad(node) and node not in moved
        if cleared_optimizer(function, node) == name
    ]
    follows = partial(may_follow, unit.project, function, use.statement, between=ends)
    if not ends or any(map(follows, _training(unit, function))) or _taken(unit, function, use):
        return None
    return Reading(trained, name)


def _place(tree: Tree, node: ast.expr) -> str | None:
    """Return how a variable, an attribute or an item of a constant key is written; None for anything else."""
    return tree.segment(node) if is_place(node) else None


def _taken(unit: Unit, function: Function, use: Use) -> bool:
    """Tell whether a step of another function may take the gradients of a read, of whatever optimizer if it is not known."""
    program = program_of(unit.project)
    every = [optimizer.number for optimizer in program.training.objects.optimizers]
    callees = unit.project.callees(use.node) if isinstance(use.node, ast.Call) else []
    run = {f for callee in callees for f in (callee, *reachable(unit.project, callee))}
    reads = [
        *(event for event in program.events(function, use.node)),
        *(e for f in run for held in program.training.of(f).values() for e in held),
    ]
    return any(
        taken(program, number, read.node)
        for read in reads
        if read.kind is Kind.READ_GRAD
        for number in sorted(read.optimizers or every)
    )


def places(function: Function, found: list[Use], reading: Reading) -> tuple[ast.stmt, ast.stmt]:
    """Return the statements before which to unscale gradients that are only read, and behind which they are done with."""
    tree = function.module.tree
    beside_it = (beside(tree, use.statement, reading.backward) for use in found)
    tops = sorted((t for t in beside_it if t is not None), key=partial(position, tree))
    return tops[0], tops[-1]


def _training(unit: Unit, function: Function) -> Iterator[ast.AST]:
    """Yield the steps and backward passes of a function, and the calls that may come to others."""
    yield from (step.call for step in unit.live_steps(function))
    yield from (backward.node for backward in unit.backwards_of(function))
    elsewhere = {s.function for s in unit.steps} | {b.function for b in unit.backwards}
    yield from calls_to(unit.project, function, elsewhere)


def _trained_before(
    unit: Unit, function: Function, stmt: ast.stmt
) -> tuple[ast.stmt, ast.stmt] | None:
    """Return the nearest statement before one that trains, and what of its block holds the one."""
    tree = function.module.tree
    for level in levels(tree, stmt):
        if unit.trains(function.module, level):
            return None
        for before in reversed(tree.block(level)[: position(tree, level)]):
            if unit.trains(function.module, before):
                return before, level
    return None


def _acts_or_leaves(stmt: ast.stmt) -> bool:
    """Tell whether a statement may clear gradients, step, or leave the block that it stands in."""
    for node in walk(stmt):
        if isinstance(node, ast.Return) or clears(node):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "step":
                return True
        if isinstance(node, ast.Break | ast.Continue) and not isinstance(stmt, Loop):
            return True
    return False


def cleared_optimizer(function: Function, zeroing: ast.Expr) -> str:
    """Return the optimizer of a ``zero_grad()`` as it is written."""
    assert isinstance(zeroing.value, ast.Call) and isinstance(zeroing.value.func, ast.Attribute)
    return function.module.tree.segment(zeroing.value.func.value)


def place(function: Function, found: list[Use], zeroing: ast.Expr) -> ast.stmt:
    """Return the statement beside a ``zero_grad()`` before which to unscale what is read before it."""
    tree = function.module.tree
    return children_of(tree, [*(use.statement for use in found), zeroing])[0]


def _always_fed(unit: Unit, function: Function, use: Use, zeroing: ast.Expr) -> bool:
    """Tell whether a backward always runs between a read and the start of the block of a ``zero_grad()``."""
    tree = function.module.tree
    block = tree.block(zeroing)
    top = beside(tree, use.statement, zeroing)
    return (
        top is not None
        and not unit.trains(function.module, top)
        and any(_runs(unit, function, stmt) for stmt in block[: position(tree, top)])
    )


def _runs(unit: Unit, function: Function, stmt: ast.stmt) -> bool:
    """Tell whether a statement runs a backward on every way through it."""

    def runs(part: ast.stmt) -> bool:
        if isinstance(part, ast.With):
            return comes_to(part.body, runs)
        trains = unit.trains(function.module, part)
        return isinstance(part, ast.Expr) and (trains or backward_of(part.value) is not None)

    return comes_to([stmt], runs)


def _next(unit: Unit, function: Function, stmt: ast.stmt, steps: list[Step]) -> ast.Expr | None:
    """Return the zero_grad that follows a statement in any case, before anything trains or steps."""
    tree = function.module.tree
    for level in levels(tree, stmt):
        for later in tree.block(level)[position(tree, level) + 1 :]:
            if isinstance(later, ast.Expr) and is_zero_grad(later):
                if cleared_optimizer(function, later) in {step.text for step in steps}:
                    return later
            stepped = any(inside(tree, step.call, later) for step in steps)
            if stepped or unit.trains(function.module, later):
                return None
    return None


def _fed_anew(unit: Unit, step: Step, zeroing: ast.Expr) -> bool:
    """Tell whether a backward runs between the zero_grad and a step."""
    return any(
        runs_before(unit.project, step.function, zeroing, backward.node)
        and runs_before(unit.project, step.function, backward.node, step.call)
        for backward in unit.live_backwards(step.function)
    )
