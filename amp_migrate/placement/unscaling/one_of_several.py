"""Helpers that clip and step for one of several classes, ``self.optimizer.clip_grad_norm(max_norm)``, or GradScalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.paths import calls_anything, path, same, walk
from amp_migrate.facts.tree import Tree
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.unscaling.unscale import Asked, Inside
from amp_migrate.plan.cannot import Cannot
from amp_migrate.project import Function
from amp_migrate.project.order import inside
from amp_migrate.project.relatives import sets
from amp_migrate.project.rounds import rebound
from amp_migrate.training.steps import Step, is_one

if TYPE_CHECKING:
    from amp_migrate.placement.steps.indirect import Indirect

# What helpers raise when they find an overflow themselves; torch raises RuntimeError.
_OVERFLOW = frozenset({"OverflowError", "FloatingPointError", "ArithmeticError"})


def inside_helper(unit: Unit, through: Indirect, found: list[Use]) -> Inside | None:
    """Return where the helper that clips unscales by itself; None where its caller can do so.

    Raises `Cannot` where the caller cannot, and no one place in the helper is sure to come once before the step.
    """
    if all(_has(f, through.own) for f in unit.project.callees(through.seen.call)):
        return None
    helpers = {f for use in found for f in _callees(unit, use)} & unit.clip_helpers
    sites = [site for site in unit.of(Kind.MASTER_PARAMS) if site.function in helpers]
    once = len(found) == 1 and found[0].statement is through.seen.tree.statement(found[0].node)
    if once and len(sites) == 1 and len(helpers) == 1:
        site = sites[0]
        own = site.call.args[0] if site.call.args else None
        alike = site.function.cls is through.own.function.cls
        if own is not None and alike and same(own, through.own.optimizer):
            return Inside(site.function, site.statement, site.module.tree.segment(own))
    raise Cannot(
        "AMP907",
        through.seen.module,
        found[0].node,
        "gradients are read here for objects of several classes, not all of which hold an optimizer to unscale",
        "read them in the method that steps the optimizer, before the step, then run again",
    )


def beside_native(unit: Unit, step: Step, first: ast.stmt) -> Asked | None:
    """Return the test under which a step is taken, if a GradScaler of the source takes it else; `first` stands before both."""
    tree, function = step.tree, step.function
    for up, holds in tree.sides(step.anchor):
        if inside(tree, first, up) or not isinstance(up, ast.If):
            return None
        others = up.orelse if holds else up.body
        calls = (n for stmt in others for n in walk(stmt) if isinstance(n, ast.Call))
        if any(_steps_natively(unit, step, call) for call in calls):
            told = not calls_anything(up.test)
            same = told and not rebound(unit.project, function, up.test, first, up)
            return Asked(up.test, holds) if same else None
    return None


def _steps_natively(unit: Unit, step: Step, call: ast.Call) -> bool:
    """Tell whether a call is a step of the same optimizer by a GradScaler of the source."""
    func, scaler = call.func, unit.losses.objects.scaler
    if not isinstance(func, ast.Attribute) or func.attr != "step" or not call.args:
        return False
    alike = is_one(unit.project, step.module, call.args[0], step.optimizer)
    return alike and scaler(step.module, func.value) is not None


def _callees(unit: Unit, use: Use) -> list[Function]:
    return unit.project.callees(use.node) if isinstance(use.node, ast.Call) else []


def _has(function: Function, own: Step) -> bool:
    """Tell whether the objects of another step's class hold an optimizer under the same name."""
    names = (path(own.optimizer) or "").split(".")
    if function is own.function or function.cls is None or len(names) < 2:
        return True
    return sets(function.cls, names[1])


def is_handling(tree: Tree, jump: ast.stmt) -> bool:
    """Tell whether a jump handles an exception."""
    return any(isinstance(up, ast.ExceptHandler) for up in tree.ancestors(jump))


def handles_overflow(unit: Unit, seen: Step, jump: ast.stmt, found: list[Use]) -> bool:
    """Tell whether a way past the step handles an error that other helpers raise, and the one that unscales never.

    Their own search for an overflow raises it before they clip; torch's clip does not.
    """
    tree = seen.tree
    handler = next((up for up in tree.ancestors(jump) if isinstance(up, ast.ExceptHandler)), None)
    if handler is None or handler.type is None:
        return False
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not all(isinstance(t, ast.Name) and t.id in _OVERFLOW for t in types):
        return False
    around = tree.parents[handler]
    tried = [use for use in found if inside(tree, use.statement, around)]
    only = isinstance(around, ast.Try) and len(around.body) == 1 and len(tried) == len(found) == 1
    helpers = set(_callees(unit, found[0])) & unit.clip_helpers
    return only and bool(helpers) and not any(map(_raises, helpers))


def _raises(function: Function) -> bool:
    return any(isinstance(node, ast.Raise) for node in function.own_nodes)
