"""Reads of gradients from which the loss scale cancels."""

from __future__ import annotations

import ast

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import tail
from amp_migrate.facts.tree import Tree
from amp_migrate.training.beliefs import REDUCES


def only_averaged(tree: Tree, stmt: ast.stmt) -> bool:
    """Tell whether a loop over parameters averages gradients over processes, which scaled ones allow."""
    if any(_is_reduction(c) for c in ast.walk(stmt)) or _collects_for_reduction(tree, stmt):
        return True
    return divides_by_norm(tree, stmt)


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


def divides_by_norm(tree: Tree, stmt: ast.stmt) -> bool:
    """Tell whether gradients are only divided by their own norm, as in FGM attacks: their scale cancels."""
    norms = {
        target.id
        for node in ast.walk(stmt)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name) and tail(node.value) == "norm"
    }
    reads = [
        n
        for n in ast.walk(stmt)
        if isinstance(n, ast.Attribute) and n.attr == "grad" and isinstance(n.ctx, ast.Load)
    ]
    uses = [n for n in ast.walk(stmt) if isinstance(n, ast.Name) and n.id in norms]
    uses = [n for n in uses if isinstance(n.ctx, ast.Load)]
    return (
        bool(norms)
        and all(_only_divides(tree, node) for node in uses)
        and all(
            only_freed(tree, node) or any(_cancels(up, node, norms) for up in tree.ancestors(node))
            for node in reads
        )
    )


def _only_divides(tree: Tree, name: ast.Name) -> bool:
    """Tell whether a norm is only divided by, or asked whether it is zero or finite."""
    up = tree.parent(name)
    if isinstance(up, ast.BinOp) and isinstance(up.op, ast.Div):
        return up.right is name
    if isinstance(up, ast.Compare):
        return all(isinstance(c, ast.Constant) and c.value == 0 for c in up.comparators)
    return isinstance(up, ast.Call) and tail(up) in ("isnan", "isinf", "isfinite")


def _cancels(up: ast.AST, grad: ast.AST, norms: set[str]) -> bool:
    if isinstance(up, ast.Call):
        return tail(up) == "norm"
    if not isinstance(up, ast.BinOp) or not isinstance(up.op, ast.Div):
        return False
    by_norm = isinstance(up.right, ast.Name) and up.right.id in norms
    return by_norm and any(node is grad for node in ast.walk(up.left))


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
