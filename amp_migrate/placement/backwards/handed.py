"""Where a scaled loss goes from its block: to what is given it, and to the functions that read it where they are made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.sites import Site
from amp_migrate.facts.below import every
from amp_migrate.project import Module, Project
from amp_migrate.training.steps import backward_of


def is_handed(project: Project, module: Module, use: ast.Name, differentiated: bool) -> bool:
    """Tell whether a use hands the scaled loss on to what may differentiate it.

    Where the block itself does, whatever is not known to be code of the project only reads it.
    """
    node: ast.AST = use
    up = module.tree.parent(node)
    while isinstance(up, ast.keyword | ast.Starred):
        node, up = up, module.tree.parent(up)
    if isinstance(up, ast.Return | ast.Yield):
        return True
    if isinstance(up, ast.Call) and node is not up.func:
        if differentiated or project.callees(up):
            return bool(project.callees(up))
        return project.external(module, up.func) is None
    if isinstance(up, ast.Attribute):
        return is_bound(module, use)
    return not differentiated and not isinstance(up, ast.FormattedValue | ast.Expr)


def is_bound(module: Module, use: ast.Name) -> bool:
    """Tell whether a use takes the method ``scaled_loss.backward``, for others to call."""
    up = module.tree.parent(use)
    if not isinstance(up, ast.Attribute) or up.attr != "backward":
        return False
    return module.tree.call_of(up) is None


def reached(project: Project, module: Module, handed: tuple[ast.Name, ...]) -> Iterator[ast.Call]:
    """Yield the backward passes anywhere that may run on a loss that is handed on."""
    for where in project.modules.values() if handed else ():
        for call in where.tree.nodes(ast.Call):
            loss = backward_of(call)
            if loss is not None:
                parts = _operands(loss)
                if any(project.values.same(module, u, where, p) for u in handed for p in parts):
                    yield call


def _operands(node: ast.expr) -> list[ast.expr]:
    """Return what an expression is or computes with: ``loss`` and ``2`` of ``loss / 2``."""
    if isinstance(node, ast.BinOp):
        return [*_operands(node.left), *_operands(node.right)]
    return [node]


def closed_over(project: Project, site: Site, block: ast.With, alias: str) -> Iterator[ast.Call]:
    """Yield the backward passes on the scaled loss in functions that read it where they are made, for the block to call."""
    module, inner = site.module, set(every(block))
    for call in site.function.all_calls:
        if (
            call not in inner
            and isinstance(loss := backward_of(call), ast.Name)
            and loss.id == alias
            and module.scopes.owner(loss) is site.function.scope
            and project.function_of(module, call) is not site.function
        ):
            yield call
