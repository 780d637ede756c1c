"""What an assignment sets that only said that Apex is not there: ``amp = None``, a flag, no reason for its lack."""

from __future__ import annotations

import ast

from amp_migrate.availability.installed import looks
from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import path
from amp_migrate.facts.scopes import assigned, targets_of
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Drop, Edit, Replace
from amp_migrate.rules.base import FileContext
from amp_migrate.rules.guards.flags_asked import asked_elsewhere, still_read

_Pair = tuple[ast.expr, ast.expr | None]


def spent_in(context: FileContext, node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    """Return the names that an assignment sets and that nothing needs once Apex is out of the file."""
    spent = [target for target, _ in _pairs(node) if _is_spent(context, target)]
    up = context.module.tree.parents[node]
    asked = {*asked_elsewhere(context), *still_read(context)} if spent else set()
    if isinstance(up, ast.Try | ast.ExceptHandler) and asked & set(map(path, spent)):
        return []
    return spent


def without(tree: Tree, node: ast.Assign | ast.AnnAssign, spent: list[ast.expr]) -> Edit:
    """Return the edit that takes names out of an assignment: ``amp = wandb = None``, ``amp, wandb = None, None``."""
    kept = [pair for pair in _pairs(node) if pair[0] not in spent]
    if not kept:
        return Drop(tree.span(node))
    names = [tree.segment(target) for target, _ in kept]
    values = [tree.segment(value) for _, value in kept if value is not None]
    chained = len(targets_of(node)) > 1
    sides = [*names, values[0]] if chained else [", ".join(names), ", ".join(values)]
    return Replace(tree.span(node), " = ".join(sides))


def _pairs(node: ast.Assign | ast.AnnAssign) -> list[_Pair]:
    """Return what an assignment binds, each with its value."""
    targets, value = targets_of(node), node.value
    if len(targets) > 1 or not isinstance(targets[0], ast.Tuple):
        return [(target, value) for target in targets]
    several = value.elts if isinstance(value, ast.Tuple) else []
    if len(several) != len(targets[0].elts):
        return []
    return list(zip(targets[0].elts, several, strict=True))


def _is_spent(context: FileContext, target: ast.expr) -> bool:
    """Tell whether a name is set to what only served the guards: ``amp = None``, a flag, no reason for its lack."""
    given = assigned(context.module.tree, target)
    if not isinstance(target, ast.Name):
        return False
    if target.id in context.availability.flags:
        looked = given is not None and looks(given) and target.id not in asked_elsewhere(context)
        return given is None or isinstance(given, ast.Constant) or looked
    lacks = target.id in context.availability.lacks and isinstance(given, ast.Constant)
    if not (lacks or is_none(given)):
        return False
    if target.id in context.availability.reasons:
        return target.id not in still_read(context)
    return context.project.external(context.module, target) in ("apex.amp", "apex")
