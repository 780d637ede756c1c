"""Ways past a step that leave unscaled gradients to the next backward, which adds scaled ones to them."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import path
from amp_migrate.flow import Paths, leads
from amp_migrate.flow.cfg.subject import Fork, question
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.clearing import clearing
from amp_migrate.placement.steps.leaving import leaves_iteration
from amp_migrate.placement.windows.counting import counts
from amp_migrate.placement.windows.surviving import onward, survive
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Project
from amp_migrate.project.order import exclusive, in_branch, inside, levels, loop_of
from amp_migrate.project.rounds import graph_of, may_skip, points_of, runs_before
from amp_migrate.training.steps import Step


def accumulates(unit: Unit, function: Function, stepping: ast.AST, limit: Fork) -> bool:
    """Tell whether a test around a step waits for several micro-batches: it counts, or gradients outlive it."""
    return counts(unit, function, question(limit)) or survive(unit, function, stepping, limit)


def refuse_kept(
    unit: Unit, step: Step, first: ast.stmt, limit: Fork | None, *, by_norm: bool = False
) -> None:
    """Raise `Cannot` where an iteration that unscales at `first` may skip the step and keep its gradients.

    `limit` is the test around the step that gradients are read outside of; `by_norm`: what they are decides it.
    """
    waits = limit is not None and accumulates(unit, step.function, step.anchor, limit)
    if (
        limit is not None
        and waits
        and (counts(unit, step.function, question(limit)) or not by_norm)
    ):
        message = "gradients are read on micro-batches that do not step, and can be unscaled only once per step"
        advice = f"read them inside `if {_counting(unit, step.function, question(limit))}:` and zero them there in any case, then run again"
        raise Cannot("AMP908", step.module, limit, message, advice)
    message = f"this may go past {step.text}.step() and keep the gradients, which are unscaled by then, for the next backward"
    if limit is not None and waits:
        raise _kept(step, limit, message)
    if not any(clearing(unit.project).nodes(step.function)):
        return
    for jump in jumps(unit.project, step, first):
        if not isinstance(jump, ast.Break) and _keeps(unit, step.function, first, jump):
            raise _kept(step, jump, message)


def _counting(unit: Unit, function: Function, test: ast.expr) -> str:
    """Return the part of a test that waits for several micro-batches."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return next(
        (ast.unparse(part) for part in parts if counts(unit, function, part)), ast.unparse(test)
    )


def leaves_out(step: Step, limit: Fork, reads: list[ast.stmt], steps: list[Step]) -> ast.If | None:
    """Return the outermost test within a boundary that may leave out a step, and stands behind the reads before it.

    Where the other way of a test steps the optimizer as well, it leaves nothing out; `steps` are those of the function.
    Nor does one of whether that optimizer is there: it is, where gradients of it were unscaled.
    """
    tree = step.tree
    others = [s for s in steps if s.text == step.text]
    tests = [
        up
        for up in levels(tree, step.anchor)
        if isinstance(up, ast.If) and up is not limit and inside(tree, up, limit)
        if not (_asks_for(up.test, step.text) and in_branch(tree, step.anchor, up.body))
        if not any(
            inside(tree, s.anchor, up) and exclusive(tree, s.anchor, step.anchor) for s in others
        )
    ]
    behind = [up for up in tests if not any(inside(tree, read, up) for read in reads)]
    return behind[-1] if behind else None


def _asks_for(test: ast.expr, optimizer: str) -> bool:
    """Tell whether a test asks only whether an optimizer is there: ``if optimizer:``, ``if optimizer is not None:``."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
        test = test.left if is_none(test.comparators[-1]) else test
    return path(test) == optimizer


def jumps(project: Project, step: Step, first: ast.stmt) -> list[ast.stmt]:
    """Return the ways out of an iteration between a statement of it and its step."""
    tree = step.tree
    found: list[ast.stmt] = []
    for node in step.function.own_nodes:
        if leaves_iteration(node, step.function):
            loop = None if isinstance(node, ast.Return | ast.Raise) else loop_of(tree, node)
            past = loop is None or inside(tree, step.call, loop)
            if past and may_skip(project, step.function, node, step.call):
                if runs_before(project, step.function, first, node, exceptions=True):
                    if _in_its_round(project, step, first, node):
                        found.append(node)
    return found


def _in_its_round(project: Project, step: Step, first: ast.stmt, jump: ast.stmt) -> bool:
    """Tell whether a way out of a loop may be taken in the round of a statement: in the next one, a step came between."""
    apart = [level for level in levels(step.tree, jump) if not inside(step.tree, step.call, level)]
    if not apart or inside(step.tree, first, apart[-1]):
        return True
    return runs_before(project, step.function, first, apart[-1], exceptions=True)


def _keeps(unit: Unit, function: Function, first: ast.stmt, jump: ast.stmt) -> bool:
    """Tell whether gradients that are there at a statement may get by a jump to a backward, with nothing that clears them."""
    graph = graph_of(unit.project, function)
    cleared = clearing(unit.project).points(function)
    starts, goals = (points_of(unit.project, function, node) for node in (first, jump))
    paths = Paths(graph, exceptions=True)
    return leads(paths, starts[:1], goals[:1], cleared) and bool(
        onward(unit, function, goals[-1:], [])
    )


def _kept(step: Step, node: ast.AST, message: str) -> Cannot:
    return Cannot(
        "AMP908",
        step.module,
        node,
        message,
        f"call {step.text}.zero_grad() on this way as well, then run again",
    )
