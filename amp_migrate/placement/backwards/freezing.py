"""Parameters that are frozen by hand, before or after their network is wrapped for distributed training."""

from __future__ import annotations

import ast
from typing import TypeGuard

from amp_migrate.facts.constants import is_false
from amp_migrate.facts.paths import all_given, path
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.beliefs import LIST_PARAMETERS, RUNS_NO_FORWARD


def frozen_later(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a part of what a call wraps is frozen later in its function: it gets no gradient then.

    A loop that freezes the whole network says that it is not trained at all, as a teacher.
    """
    tree, function = module.tree, project.function_of(module, call)
    stmt = tree.statement(call)
    if not isinstance(stmt, ast.Assign) or stmt.value is not call or len(stmt.targets) != 1:
        return False
    name = path(stmt.targets[0])
    return name is not None and any(
        isinstance(node, ast.For)
        and _freezes_part(tree, node, name)
        and may_follow(project, function, stmt, node)
        for node in function.own_nodes
    )


def frozen_before(project: Project, module: Module, call: ast.Call, wrapped: ast.expr) -> bool:
    """Tell whether all of what a call wraps was frozen earlier in its function, and nothing may have let go of a part since."""
    tree, function = module.tree, project.function_of(module, call)
    while isinstance(wrapped, ast.Call) and isinstance(wrapped.func, ast.Attribute):
        wrapped = wrapped.func.value
    name, stmt = path(wrapped), tree.statement(call)
    if name is None:
        return False
    above = [stmt, *(up for up in tree.ancestors(stmt) if isinstance(up, ast.stmt))]
    return any(
        _freezes_all(node, name)
        and any(tree.block(node) is tree.block(up) for up in above if up is not function.node)
        and may_follow(project, function, node, stmt)
        and not _lets_go(project, function, node, stmt, name)
        for node in function.own_nodes
        if isinstance(node, ast.For | ast.Expr)
    )


def _freezes_all(stmt: ast.For | ast.Expr, name: str) -> bool:
    """Tell whether a statement freezes every parameter of a network: a loop that does nothing else, or its method."""
    if isinstance(stmt, ast.Expr):
        call = stmt.value
        return (
            _is_off(call) and isinstance(call.func, ast.Attribute) and path(call.func.value) == name
        )
    over = stmt.iter
    if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute):
        return False
    if path(over.func.value) != name or over.func.attr not in LIST_PARAMETERS or len(stmt.body) > 1:
        return False
    first = stmt.body[0]
    if isinstance(first, ast.Expr):
        return _is_off(first.value)
    return (
        isinstance(first, ast.Assign) and all(map(freezes, first.targets)) and is_false(first.value)
    )


def _is_off(node: ast.expr) -> TypeGuard[ast.Call]:
    """Tell whether an expression is ``requires_grad_(False)`` of something."""
    return (
        isinstance(node, ast.Call)
        and freezes(node)
        and len(node.args) == 1
        and is_false(node.args[0])
    )


def _lets_go(
    project: Project, function: Function, frozen: ast.stmt, wrapping: ast.stmt, name: str
) -> bool:
    """Tell whether what runs between two statements may let parameters of a network require gradients, or bind another."""
    tree = function.module.tree
    return any(
        tree.statement(node) is not wrapping
        and not (node is frozen or frozen in tree.ancestors(node))
        and _may_let_go(project, function.module, node, name)
        and may_follow(project, function, frozen, node)
        and may_follow(project, function, node, wrapping)
        for node in function.own_nodes
    )


def _may_let_go(project: Project, module: Module, node: ast.AST, name: str) -> bool:
    if freezes(node):
        return not (isinstance(node, ast.Call) and _is_off(node))
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        bound = path(node) or ""
        stmt = module.tree.statement(node)
        value = getattr(stmt, "value", None)
        kept = value is not None and any(
            isinstance(part, ast.expr) and path(part) == name for part in ast.walk(value)
        )
        return bound.startswith(f"{name}.") or (bound == name and not kept)
    if not isinstance(node, ast.Call) or project.apex(module, node.func) is not None:
        return False
    if isinstance(node.func, ast.Attribute) and path(node.func.value) == name:
        return node.func.attr not in RUNS_NO_FORWARD - {"apply"}
    return any(path(given) == name for given in all_given(node))


def _freezes_part(tree: Tree, loop: ast.For, name: str) -> bool:
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = path(call.func.value)
    if owner is None or call.func.attr not in LIST_PARAMETERS:
        return False
    settings = [node for stmt in loop.body for node in ast.walk(stmt) if freezes(node)]
    if owner in (name, f"{name}.module"):
        return any(tree.parent(tree.statement(node)) is not loop for node in settings)
    return owner.startswith(f"{name}.") and bool(settings)


def freezes(node: ast.AST) -> bool:
    """Tell whether a node says of parameters whether they require gradients."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr == "requires_grad"
    return False
