"""Ways past a step that leave unscaled gradients to the next backward, which adds scaled ones to them."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import walk
from amp_migrate.unit.cannot import Cannot
from amp_migrate.unit.order import exclusive, in_branch, inside, key, loop_of
from amp_migrate.unit.steps import Step

_ACCUMULATION = ("accum", "update", "sync", "last", "boundary", "step", "micro", "iter_size")


def counts(test: ast.expr) -> bool:
    """Tell whether a test waits for several micro-batches: ``(i + 1) % k == 0``."""
    text = ast.unparse(test).lower()
    return "%" in text or any(word in text for word in _ACCUMULATION)


def refuse_kept(step: Step, first: ast.stmt, limit: ast.If | None) -> None:
    """Raise `Cannot` where an iteration that unscales at `first` may skip the step and keep its gradients.

    `limit` is the test around the step that gradients are read outside of.
    """
    if limit is not None and counts(limit.test):
        message = "gradients are read on micro-batches that do not step, and can be unscaled only once per step"
        advice = f"read them inside `if {_counting(limit.test)}:` and zero them there in any case, then run again"
        raise Cannot("AMP908", step.module, limit, message, advice)
    zeroing = [node for node in walk(step.function.scope) if _zeroes(node)]
    if not zeroing:
        return
    message = f"this may go past {step.text}.step() and keep the gradients, which are unscaled by then, for the next backward"
    if limit is not None and all(
        in_branch(step.tree, node, _branch_of(step, limit)) for node in zeroing
    ):
        raise _kept(step, limit, message)
    for jump in jumps(step, first):
        if not any(_clears(step, node, jump) for node in zeroing):
            raise _kept(step, jump, message)


def _counting(test: ast.expr) -> str:
    """Return the part of a test that waits for several micro-batches."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return next((ast.unparse(part) for part in parts if counts(part)), ast.unparse(test))


def jumps(step: Step, first: ast.stmt) -> list[ast.stmt]:
    """Return the ways out of an iteration between a statement of it and its step."""
    tree = step.tree
    found: list[ast.stmt] = []
    for node in walk(step.function.scope):
        if isinstance(node, ast.Continue | ast.Break | ast.Return):
            loop = None if isinstance(node, ast.Return) else loop_of(tree, node)
            leaves = loop is None or inside(tree, step.call, loop)
            if key(first) < key(node) < key(step.call) and leaves:
                if not exclusive(tree, first, node):
                    found.append(node)
    return found


def _branch_of(step: Step, limit: ast.If) -> list[ast.stmt]:
    return limit.body if in_branch(step.tree, step.anchor, limit.body) else limit.orelse


def _clears(step: Step, zeroing: ast.AST, jump: ast.stmt) -> bool:
    """Tell whether a zero_grad runs in the iteration that a jump ends, before it."""
    tree = step.tree
    loop = None if isinstance(jump, ast.Return) else loop_of(tree, jump)
    around = loop if loop is not None else step.function.scope
    before = inside(tree, zeroing, around) and key(zeroing) < key(jump)
    return isinstance(jump, ast.Break) or (before and not exclusive(tree, zeroing, jump))


def _zeroes(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ("zero_grad", "zero_none_grad") or (
            node.attr == "grad" and isinstance(node.ctx, ast.Store)
        )
    return False


def _kept(step: Step, node: ast.AST, message: str) -> Cannot:
    return Cannot(
        "AMP908",
        step.module,
        node,
        message,
        f"call {step.text}.zero_grad() on this way as well, then run again",
    )
