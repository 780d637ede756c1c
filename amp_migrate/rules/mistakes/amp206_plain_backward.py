"""A plain `loss.backward()` in a program that initialized Apex is scaled.

## What it does
Writes `scaler.scale(loss).backward()` where Apex was initialized but `scale_loss` forgotten.

## Why
Without loss scaling small fp16 gradients underflow to zero.

## Example
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    loss = criterion(model(images), labels)
    loss.backward()

## Use instead
    scaler.scale(loss).backward()

## Safety
Changes behaviour: gradients that were flushed to zero now arrive, and steps that overflow are skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from amp_migrate.facts.paths import path
from amp_migrate.placement.making.off import runs_unscaled
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import AddImport, Decision, Edit, Replace, Status
from amp_migrate.project.relatives import family
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context, Rule, Safety, decision
from amp_migrate.rules.calls.amp116_further_backward import scaled
from amp_migrate.training.steps import Backward, Step

RULE = Rule("AMP206", "a plain backward under Apex is scaled", Safety.CHANGES, order=16)
_UNSCALED = "Apex was on here, and no amp.scale_loss scaled this loss"
_NAMES = ("scaled_loss", "loss_scaled", "amp_loss")


def decide(context: Context) -> Iterator[Decision]:
    """Scale the backward passes of a unit that has no scale_loss block."""
    for backward in _plain(context):
        off = _runs_unscaled(context, backward)
        made = scaled(context, RULE, backward, Status.ROUTINE if off else Status.FIXED)
        message = f"{made.finding.message}: {_UNSCALED}"
        yield replace(made, finding=replace(made.finding, message=message))


def _runs_unscaled(context: Context, backward: Backward) -> bool:
    return runs_unscaled(context.unit, backward.function, backward.node)


def decide_in_apex(context: Context) -> Iterator[Decision]:
    """Put the backward passes of such a unit under `amp.scale_loss`, where Apex is on."""
    for backward in _plain(context):
        module, tree = backward.module, backward.module.tree
        stmt = tree.parent(backward.node)
        if not isinstance(stmt, ast.Expr):
            raise _cannot(backward, "the value of this backward is used")
        amp, edits = _amp(backward)
        name = _free_name(backward)
        head = f"{amp}.scale_loss({tree.segment(backward.loss)}, {_optimizers(context, backward)})"
        given = tree.segment(backward.node)[len(tree.segment(backward.node.func)) :]  # type: ignore[union-attr]
        text = f"with {head} as {name}:\n    {name}.backward{given}"
        told = context.casts.told(backward.function, stmt, training=True)
        enabled = told.text if told is not None else ""
        if enabled == "False":
            continue
        if told is not None and enabled:
            if _runs_unscaled(context, backward):
                continue
            if told.by_scaler:
                raise _cannot(backward, "the flag that turns Apex on cannot be read here")
            indented = text.replace("\n", "\n    ")
            text = f"if {enabled}:\n    {indented}\nelse:\n    {tree.segment(stmt)}"
        edits.append(Replace(tree.span(stmt), text))
        message = f"becomes `with {head} as {name}`: {_UNSCALED}"
        yield decision(RULE, Status.FIXED, module, backward.node, message, edits)


def _plain(context: Context) -> Iterator[Backward]:
    if any(b.scaled for b in context.unit.backwards):
        return
    for backward in context.unit.backwards:
        if context.is_gone(backward.node):
            continue
        if not context.settings.migrates and _beside_another_way(context, backward):
            continue
        if not context.settings.enabled(RULE.code):
            raise Cannot(
                RULE.code,
                backward.module,
                backward.node,
                "the loss is not scaled although amp is initialized, and AMP206 is switched off",
                "let amp-migrate use AMP206, or write `with amp.scale_loss(loss, optimizer) as scaled_loss:` here, then run again",
            )
        yield backward


def _beside_another_way(context: Context, backward: Backward) -> bool:
    """Tell whether the other branch of a test gives the loss and its optimizer to code that cannot be read."""
    optimizers = {path(step.optimizer) for step in context.unit.steps_of(backward.function)}
    stmt = backward.module.tree.statement(backward.node)
    for up in backward.module.tree.ancestors(stmt):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        branches = (up.body, up.orelse) if isinstance(up, ast.If) else ()
        for branch in branches:
            for call in (n for part in branch for n in ast.walk(part) if isinstance(n, ast.Call)):
                given = {path(argument) for argument in call.args} - {None}
                both = path(backward.loss) in given and bool(optimizers & given)
                if both and not context.unit.project.callees(call):
                    return True
    return False


def _amp(backward: Backward) -> tuple[str, list[Edit]]:
    """Return how the place of a backward says `apex.amp`, and the import that it needs for that."""
    tree = backward.module.tree
    for node in tree.nodes(ast.ImportFrom, ast.Import):
        if tree.function(node) not in (None, tree.function(backward.node)):
            continue
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                if (node.module, alias.name) == ("apex", "amp") and not node.level:
                    return alias.asname or "amp", []
            elif alias.name == "apex.amp" and alias.asname:
                return alias.asname, []
            elif alias.name in ("apex", "apex.amp"):
                return f"{alias.asname or 'apex'}.amp", []
    return "amp", [AddImport("from apex import amp")]


def _optimizers(context: Context, backward: Backward) -> str:
    """Return the optimizers that are stepped after a backward, before the next one."""
    tree = backward.module.tree
    found: dict[str, Step] = {}
    others = [b.node for b in context.unit.backwards_of(backward.function) if b is not backward]
    runs = partial(runs_before, context.unit.project, backward.function, backward.node)
    for step in context.unit.steps_of(backward.function):
        if not runs(step.call) or (found and not runs(step.call, others)):
            continue
        if isinstance(step.anchor, ast.For) and step.anchor is not tree.statement(step.call):
            return f"list({tree.segment(step.anchor.iter)})"
        found.setdefault(tree.segment(step.optimizer), step)
    if not found:
        found = dict(_elsewhere(context, backward))
    if not found:
        raise _cannot(backward, "the optimizer of this backward has no name here")
    return next(iter(found)) if len(found) == 1 else f"[{', '.join(found)}]"


def _elsewhere(context: Context, backward: Backward) -> Iterator[tuple[str, Step]]:
    """Yield the optimizers stepped by other methods of the same object, as the method of a backward calls them."""
    cls, receiver = backward.function.cls, backward.function.receiver
    if cls is None or receiver is None or len(context.unit.backwards) > 1:
        return
    for step in context.unit.steps:
        other = step.function.cls
        base, _, attribute = step.tree.segment(step.optimizer).partition(".")
        if other is not None and other in family(cls) and base == step.function.receiver:
            yield f"{receiver}.{attribute}", step


def _free_name(backward: Backward) -> str:
    scope = backward.module.tree.scope(backward.node)
    taken = {path(node) for node in ast.walk(scope) if isinstance(node, ast.Name)}
    return next((name for name in _NAMES if name not in taken), "loss_for_amp")


def _cannot(backward: Backward, reason: str) -> Cannot:
    return Cannot(
        RULE.code,
        backward.module,
        backward.node,
        f"the loss is not scaled although amp is initialized, and {reason}",
        "write `with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()` by hand",
    )
