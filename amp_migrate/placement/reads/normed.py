"""Reads of gradients from which the loss scale cancels."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import tail
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Project
from amp_migrate.training.beliefs import REDUCES
from amp_migrate.training.reads.magnitude import Magnitude


def only_averaged(project: Project, stmt: ast.stmt) -> bool:
    """Tell whether a loop over parameters averages gradients over processes, or what it computes of them knows no scale."""
    module = project.module_of(stmt)
    if any(map(_is_reduction, ast.walk(stmt))) or _collects_for_reduction(module.tree, stmt):
        return True
    magnitude = Magnitude(project.function_of(module, stmt))
    reads = [n for n in ast.walk(stmt) if isinstance(n, ast.Attribute) and n.attr == "grad"]
    reads = [n for n in reads if isinstance(n.ctx, ast.Load)]
    return bool(reads) and all(map(magnitude.cancels, reads))


def _is_reduction(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and any(word in tail(node) for word in REDUCES)


def _collects_for_reduction(tree: Tree, stmt: ast.stmt) -> bool:
    """Tell whether a list of gradients is only made to be averaged: ``grads = [...]; all_reduce(grads)``."""
    if not isinstance(stmt, ast.Assign) or not isinstance(stmt.targets[0], ast.Name):
        return False
    scope = tree.function(stmt) or tree.module
    name = stmt.targets[0].id
    reads = [
        n
        for n in ast.walk(scope)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
    ]
    return bool(reads) and all(_is_reduction(tree.parents[n]) for n in reads)


def only_freed(tree: Tree, node: ast.Attribute) -> bool:
    """Tell whether a `.grad` is only tested for None."""
    parent = tree.parent(node)
    return isinstance(parent, ast.Compare) and any(is_none(c) for c in parent.comparators)


def sets_zero(tree: Tree, node: ast.Attribute) -> bool:
    """Tell whether a gradient, or part of one, is set to zero, whatever its scale: ``weight.grad[0] = 0``."""
    up = tree.parent(node)
    if isinstance(up, ast.Attribute) and up.attr == "data":
        up = tree.parent(up)
    if isinstance(up, ast.Attribute):
        return up.attr == "zero_"
    store = tree.parent(up) if isinstance(up, ast.Subscript) else None
    return (
        isinstance(store, ast.Assign)
        and isinstance(store.value, ast.Constant)
        and not store.value.value
    )


def added_to(tree: Tree, node: ast.Attribute) -> bool:
    """Tell whether something is added to a gradient in place, which must have its scale: ``p.grad += p``."""
    up = tree.parent(node)
    return (
        isinstance(up, ast.AugAssign) and up.target is node and isinstance(up.op, ast.Add | ast.Sub)
    )
