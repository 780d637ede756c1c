"""What a product of matrices multiplies, by an operator, a function or a method."""

from __future__ import annotations

import ast
from collections.abc import Collection

from amp_migrate.project import Module, Project
from amp_migrate.training.bindings import operands


def factors(
    project: Project,
    module: Module,
    node: ast.AST,
    functions: Collection[str],
    methods: Collection[str],
) -> list[ast.expr] | None:
    """Return what a product multiplies by ``@``, one of some functions of libraries or a method; None for any other node."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        return operands(module, node) if isinstance(node.op, ast.MatMult) else None
    if not isinstance(node, ast.Call):
        return None
    name = project.external(module, node.func)
    if name is not None:
        return node.args if name in functions else None
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in methods:
        return None
    return None if project.callees(node) else [node.func.value, *node.args]
