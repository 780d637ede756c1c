"""A clip on every micro-batch moves to the step.

## What it does
Moves gradient clipping (and norm logging) from every micro-batch into the `if` that steps. One that stands
in one branch of an `if` that stays takes its test along. A clip that ends the function with the backward, whose calls are all in
its file, moves to where its callers step.

## Why
Apex unscaled every micro-batch, so a clip outside the `if` clipped each partial sum. Natively `unscale_` may
run once per step: a second call raises "unscale_() has already been called on this optimizer".

## Example
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    clip_grad_norm_(amp.master_params(optimizer), 1.0)
    if (step + 1) % accumulation_steps == 0:
        optimizer.step()

## Use instead
    scaler.scale(loss).backward()
    if (step + 1) % accumulation_steps == 0:
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

## Safety
Changes behaviour: the sum of the micro-batches is clipped once, not every partial sum.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, Edit, Insert, Move, Status, Wrap
from amp_migrate.project import Module
from amp_migrate.project.order import tests_between
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.order.relocated import condition, refuse_changing, relocated

RULE = Rule("AMP208", "clipping on every micro-batch moves to the step", Safety.CHANGES, order=26)


def decide(context: Context) -> Iterator[Decision]:
    """Move the clips that the accumulation boundary must hold."""
    yield from _behind_calls(context)
    for unscale, stmt in _moved(context):
        module = unscale.function.module
        span, anchor = module.tree.span(stmt), module.tree.span(unscale.before)
        header = _header(context, module, stmt, unscale.before)
        yield _decision(unscale, stmt, [Move(span, anchor, after=False, header=header)])
    for unscale in context.unscales:
        yield from _guards(unscale)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """Move the clips of every branch, each under its own condition."""
    yield from _behind_calls(context)
    groups: dict[ast.stmt, dict[ast.stmt, Unscale]] = {}
    for unscale, stmt in _moved(context):
        if unscale.accumulates:
            groups.setdefault(unscale.before, {})[stmt] = unscale
    for anchor, moved in groups.items():
        module = next(iter(moved.values())).function.module
        edits = relocated(context.unit.project, module, list(moved), anchor)
        for stmt, unscale in moved.items():
            yield _decision(unscale, stmt, edits)
        for unscale in dict.fromkeys(moved.values()):
            yield from _guards(unscale)


def _behind_calls(context: Context) -> Iterator[Decision]:
    """Drop the clips that end a function and are read behind its calls."""
    for module in context.unit.modules:
        spans = [respelt.unused for respelt in module.tree.respelt if respelt.clips]
        for gone in spans:
            held = (s for s in module.tree.nodes(ast.Expr) if module.tree.span(s) in gone)
            statements = sorted(held, key=module.tree.span)
            function = context.unit.project.function_of(module, statements[0])
            above = (site.function for site in context.unit.project.callers(function))
            if not {function, *above}.isdisjoint(context.unit.functions):
                message = f"the clip at the end of {function.qualname}() goes on behind its calls"
                edits = [Drop(module.tree.span(s)) for s in statements if not context.is_gone(s)]
                yield decision(RULE, Status.ROUTINE, module, statements[0], message, edits)


def _guards(unscale: Unscale) -> Iterator[Decision]:
    """Let what uses the norm of a moved clip ask whether this micro-batch stepped."""
    if not unscale.pending or unscale.limit is None:
        return
    module = unscale.function.module
    names = " = ".join(unscale.pending)
    edits: list[Edit] = [Insert(module.tree.span(unscale.limit), f"{names} = None", after=False)]
    for stmt in unscale.guarded:
        test = f"if {unscale.pending[0]} is not None:"
        edits.append(Wrap(module.tree.span(stmt), module.tree.span(stmt), test))
    message = f"`{unscale.pending[0]}` is None on the micro-batches that do not step"
    yield decision(RULE, Status.ROUTINE, module, unscale.limit, message, edits)


def _moved(context: Context) -> Iterator[tuple[Unscale, ast.stmt]]:
    for unscale in context.unscales:
        for stmt in unscale.moved:
            if unscale.accumulates and not context.settings.enabled(RULE.code):
                raise Cannot(
                    RULE.code,
                    unscale.function.module,
                    stmt,
                    "gradients are clipped on every micro-batch, and AMP208 is switched off",
                    "let amp-migrate use AMP208, or move the clip to where the optimizer steps, then run again",
                )
            yield unscale, stmt


def _decision(unscale: Unscale, stmt: ast.stmt, edits: list[Edit]) -> Decision:
    if stmt in unscale.reports:
        message = "moves to the step with the norm that it reports"
        return decision(RULE, Status.ROUTINE, unscale.function.module, stmt, message, edits)
    status = Status.FIXED if unscale.accumulates else Status.ROUTINE
    message = (
        "clipping moves from every micro-batch to the step, and clips the accumulated sum once"
    )
    if stmt in unscale.read:
        message = "what reads gradients moves from every micro-batch to the step, and finds their accumulated sum once"
    return decision(RULE, status, unscale.function.module, stmt, message, edits)


def _header(context: Context, module: Module, stmt: ast.stmt, anchor: ast.stmt) -> str | None:
    """Return the `if` that a clip takes along: the one that stays where it stood."""
    tree = module.tree
    between = tests_between(tree, stmt, anchor)
    for test in (test for test in between if test not in context.branches.collapses):
        refuse_changing(context.unit.project, module, test, anchor)
        return f"if {condition(tree, test, stmt)}:"
    return None
