"""No clip of `amp.master_params` may be left with gradients that nothing unscaled."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind, Site
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import uses
from amp_migrate.placement.unscaling.helpers import runs
from amp_migrate.placement.unscaling.unscale import Unscale
from amp_migrate.placement.windows.surviving import leaves_out
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function, Module
from amp_migrate.project.order import inside
from amp_migrate.project.reach import calls_to, reached_by, upwards
from amp_migrate.project.rounds import runs_before
from amp_migrate.training.beliefs import READS_GRADIENTS


def refuse_scaled(unit: Unit, unscales: list[Unscale]) -> None:
    """Raise `Cannot` for a clip of `master_params` that no `unscale_` of its optimizer precedes."""
    for site in unit.of(Kind.MASTER_PARAMS):
        if site.node in unit.gone or site.function in unit.clip_helpers or not _clipped(unit, site):
            continue
        if any(inside(site.module.tree, site.node, clip) for clip in unit.scaled_clips):
            continue
        here = [u for u in unscales if u.function is site.function and _before(unit, u, site.node)]
        if not any(_same_optimizer(unit, u, site) for u in here):
            raise _unplaced(site.module, site.node)


def _unplaced(module: Module, node: ast.AST, used: str = "clipped") -> Cannot:
    return Cannot(
        "AMP907",
        module,
        node,
        f"gradients are {used} here, and no place before it comes exactly once before every step, to unscale them",
        f"{'clip' if used == 'clipped' else 'read them'} once per step, straight before optimizer.step(), then run again",
    )


def refuse_helpers(unit: Unit, unscales: list[Unscale]) -> None:
    """Raise `Cannot` for a call of a function that clips which no `unscale_` precedes."""
    for helper in unit.clip_helpers:
        for caller, node in runs(unit, helper):
            if caller in unit.clip_helpers:
                continue
            here = [u for u in unscales if u.function is caller]
            if node not in unit.gone and not any(_before(unit, u, node) for u in here):
                raise _unplaced(caller.module, node)


def refuse_unseen(unit: Unit, unscales: list[Unscale]) -> None:
    """Raise `Cannot` for reads of gradients behind the call of a helper that runs a backward, which nothing unscales."""
    trained = {b.function for b in unit.live_backwards()}
    stepped = {s.function for s in unit.live_steps()}
    for function in upwards(unit.project, *trained) - trained - stepped:
        backwards = [node for node in function.calls if _only_runs(unit, node, trained, stepped)]
        unscaling = {u.function for u in unscales}
        for use in uses(unit, function, []) if backwards else ():
            if isinstance(use.node, ast.Call) and unscaling & set(unit.project.callees(use.node)):
                continue
            here = [u for u in unscales if u.function is function]
            stepping = calls_to(unit.project, function, stepped)
            fed = any(runs_before(unit.project, function, b, use.node, stepping) for b in backwards)
            if fed and not any(_before(unit, u, use.node) for u in here):
                raise _unplaced(function.module, use.node, "clipped" if use.clips else "read")


def _only_runs(unit: Unit, call: ast.Call, trained: set[Function], stepped: set[Function]) -> bool:
    """Tell whether a call runs a backward, and no step after it."""
    reached = reached_by(unit.project, call)
    return bool(reached & trained) and not reached & stepped and not leaves_out(unit, call)


def _clipped(unit: Unit, site: Site) -> bool:
    called = unit.project.lookup.called
    return any(
        isinstance(up, ast.Call) and called(site.module, up) in READS_GRADIENTS
        for up in site.module.tree.expressions(site.node)
    )


def _before(unit: Unit, unscale: Unscale, clip: ast.AST) -> bool:
    tree = unscale.function.module.tree
    within = any(inside(tree, clip, stmt) for stmt in [unscale.before, *unscale.moved])
    return within or runs_before(unit.project, unscale.function, unscale.before, clip)


def _same_optimizer(unit: Unit, unscale: Unscale, site: Site) -> bool:
    """Compare optimizers as written, where the step of the clip's own one is in the same function."""
    segment = site.module.tree.segment
    given = segment(site.call.args[0]) if site.call.args else ""
    steps = {segment(step.optimizer) for step in unit.steps_of(site.function)}
    return bool(unscale.loop) or given not in steps or unscale.optimizer == given
