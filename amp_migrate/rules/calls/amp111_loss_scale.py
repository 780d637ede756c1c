"""Reads and writes of Apex's loss scale go to the GradScaler.

## What it does
`amp._amp_state.loss_scalers[0].loss_scale()` becomes `scaler.get_scale()`. An assignment right after
`amp.initialize` becomes `init_scale=`, a later one `scaler.update(value)`; `_scale_seq_len` becomes `growth_interval=`, and
`_min_loss_scale` and `_max_loss_scale` bounds behind `update()`. A loop over all loss scalers visits the one
GradScaler. Where `_amp_state.handle._deactivate()` ended the casts of O1, a disabled GradScaler follows on the object
that keeps it.

## Why
The private state no longer exists.

## Example
    amp._amp_state.loss_scalers[0]._loss_scale = 2**20

## Use instead
    scaler = torch.cuda.amp.GradScaler(init_scale=2**20)

## Safety
Faithful; `growth_interval` counts steps where Apex counted backward passes, and after an overflow `get_scale()` falls with
`update()`, which Apex did not wait for: a read between the backward and the step is reported. `get_scale()` is 1.0 where the scaler is disabled.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.apex.visited import Visit, visit
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.backwards.first import First
from amp_migrate.placement.finding.internals import (
    by_hand,
    initial_scale,
    initial_setting,
    read,
    spelt_setting,
    tuned,
)
from amp_migrate.placement.finding.overflow import overflow_reads
from amp_migrate.plan.cannot import Cannot
from amp_migrate.plan.model import Decision, Drop, Edit, Replace, ReplaceExpression, Status
from amp_migrate.project.rounds import runs_before
from amp_migrate.rules.base import Context, Rule, Safety, decision

RULE = Rule("AMP111", "Apex's loss scale is the GradScaler's", Safety.FAITHFUL)

_EARLY = "where gradients overflow Apex had halved its scale here already; GradScaler does so in update(), behind the step"
_LATER = "read it behind update() where it has to be the new one"


def decide(context: Context) -> Iterator[Decision]:
    """Replace every use of Apex's private loss scale in the unit."""
    for site in context.unit.of(Kind.LOSS_SCALE):
        if context.is_gone(site.node):
            yield decision(RULE, Status.MIGRATED, site.module, site.node, "goes with its branch")
            continue
        visited = visit(site)
        if visited is not None:
            yield _visited(context, site, visited)
            continue
        if overflow_reads(site):
            continue
        setting = tuned(site)
        if setting is not None:
            yield _tuned(context, site, setting)
            continue
        use = read(site)
        if use == "get" and _assigned(context, site):
            message = "becomes `get_scale()` in what the GradScaler gets"
            yield decision(RULE, Status.MIGRATED, site.module, site.node, message)
            continue
        if use is None or (use == "stop" and not _can_stop(context, site)):
            raise _no_counterpart(site)
        text, edit = _native(context, site, use)
        yield decision(RULE, Status.MIGRATED, site.module, site.node, f"becomes `{text}`", [edit])
        if use == "get" and _comes_early(context, site):
            yield decision(RULE, Status.NOTE, site.module, site.node, _EARLY, advice=_LATER)


def _native(context: Context, site: Site, use: str) -> tuple[str, Edit]:
    """Return what a use of the loss scale becomes, and the edit."""
    tree, stmt = site.module.tree, site.statement
    if use not in ("get", "stop") and initial_scale(context.unit, site) is not None:
        return "init_scale= of the GradScaler", Drop(tree.span(stmt))
    scaler = context.scaler(site.function, site.node)
    if use == "get":
        text = f"{scaler}.get_scale()"
        return text, ReplaceExpression(site.span, text)
    if use == "stop":
        text = f"{scaler} = {context.spelling.scaler(['enabled=False'])}"
    else:
        value = _value(tree, stmt, _reads(context, site, scaler))
        text = f"{scaler}.update({value})"
        if value and First(context.unit).may_precede(site.function, site.node):
            # update() raises until a loss is scaled; what a disabled scaler has is empty.
            text = f'{scaler}.load_state_dict({{**{scaler}.state_dict(), "scale": {value}}})'
    return text, Replace(tree.span(stmt), text)


def _comes_early(context: Context, site: Site) -> bool:
    """Tell whether the loss scale is read between a backward of its round and the step of that."""
    function, runs = site.function, partial(runs_before, context.unit.project, site.function)
    steps = [step.call for step in context.unit.steps_of(function)]
    return any(
        backward.scaled
        and runs(backward.node, site.node, steps)
        and any(runs(site.node, step, [backward.node]) for step in steps)
        for backward in context.unit.backwards_of(function)
    )


def _no_counterpart(site: Site) -> Cannot:
    message = "this use of Apex's private loss scaler has no native counterpart"
    return Cannot("AMP909", *site.at, message, by_hand(site))


def _tuned(context: Context, site: Site, name: str) -> Decision:
    """Give a setting of Apex's loss scaler to the GradScaler, where that has it."""
    tree, stmt = site.module.tree, site.statement
    edit: Edit
    if initial_setting(context.unit, site) is not None:
        native = {"_scale_seq_len": "growth_interval= of the GradScaler"}
        message = f"becomes `{native[name]}`" if name in native else "is kept behind update()"
        edit = Drop(tree.span(stmt))
        return decision(RULE, Status.MIGRATED, site.module, site.node, message, [edit])
    if name != "_scale_seq_len":
        raise _no_counterpart(site)
    scaler = context.scaler(site.function, site.node)
    if isinstance(stmt, ast.Assign) and site.node in stmt.targets:
        interval = spelt_setting(context.unit.project, site.module, name, stmt.value)
        text = f"{scaler}.set_growth_interval({interval})"
        edit = Replace(tree.span(stmt), text)
    else:
        text = f"{scaler}.get_growth_interval()"
        edit = ReplaceExpression(site.span, text)
    return decision(RULE, Status.MIGRATED, site.module, site.node, f"becomes `{text}`", [edit])


def _visited(context: Context, site: Site, visited: Visit) -> Decision:
    """Let a loop over the loss scalers visit the one GradScaler."""
    tree = site.module.tree
    text = f"[{context.scaler(site.function, site.node)}]"
    edits: list[Edit] = [ReplaceExpression(site.span, text)]
    for node in visited.scales:
        reader = node.func if isinstance(node, ast.Call) else node
        name = tree.segment(reader).rpartition(".")[0]
        edits.append(ReplaceExpression(tree.span(node), f"{name}.get_scale()"))
    message = f"the loop visits `{text}`: one GradScaler scales all losses"
    return decision(RULE, Status.MIGRATED, site.module, site.node, message, edits)


def _can_stop(context: Context, site: Site) -> bool:
    """Tell whether all that casts asks the scaler of one object, which a disabled one can follow."""
    home = context.unit.home
    asks = context.casts.condition.value is None and len(home.inits) == 1
    return asks and site.function.cls is not None and home.is_attribute(site.function)


def _assigned(context: Context, site: Site) -> bool:
    """Tell whether a read stands in what a later statement assigns to the loss scale."""
    writes = [s for s in context.unit.of(Kind.LOSS_SCALE) if s.statement is site.statement]
    return any(read(s) == "set" and initial_scale(context.unit, s) is None for s in writes)


def _reads(context: Context, site: Site, scaler: str) -> dict[ast.expr, str]:
    """Return what the reads of the loss scale in an assignment to it become."""
    return {
        other.node: f"{scaler}.get_scale()"
        for other in context.unit.of(Kind.LOSS_SCALE)
        if other.statement is site.statement
        and isinstance(other.node, ast.expr)
        and read(other) == "get"
    }


def _value(tree: Tree, stmt: ast.stmt, texts: Mapping[ast.expr, str]) -> str:
    """Return the assigned scale as a float, which `update` wants."""
    value = stmt.value if isinstance(stmt, ast.Assign) else None
    if value is None:
        return ""
    if isinstance(value, ast.Constant) and isinstance(value.value, float):
        return tree.segment(value)
    return f"float({tree.segment(value, texts)})"
