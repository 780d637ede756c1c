"""Parameters that are frozen by hand once their network was wrapped for distributed training."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Module, Project
from amp_migrate.project.rounds import may_follow
from amp_migrate.training.beliefs import LIST_PARAMETERS


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


def _freezes_part(tree: Tree, loop: ast.For, name: str) -> bool:
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = path(call.func.value)
    if owner is None or call.func.attr not in LIST_PARAMETERS:
        return False
    settings = [node for stmt in loop.body for node in ast.walk(stmt) if _freezes(node)]
    if owner in (name, f"{name}.module"):
        return any(tree.parent(tree.statement(node)) is not loop for node in settings)
    return owner.startswith(f"{name}.") and bool(settings)


def _freezes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr == "requires_grad"
    return False
