"""Native AMP in a program: its names in torch, and the calls of what it made, even where that is out of sight."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Site
from amp_migrate.dual.arms import Arm
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Module, Project
from amp_migrate.training import contexts
from amp_migrate.training.beliefs import SCALER_CLASSES


def is_native(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node is a call of native AMP."""
    if not isinstance(node, ast.Call):
        return False
    name = project.external(module, node.func)
    if name is not None:
        return contexts.is_native(name)
    if not isinstance(node.func, ast.Attribute):
        return False
    return (
        _of_scaler(project, module, node.func)
        or _gives_backward(module.tree, node)
        or _unscales(node)
    )


def scales(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call scales a loss natively."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "scale":
        return False
    return _of_scaler(project, module, call.func) or _gives_backward(module.tree, call)


def _of_scaler(project: Project, module: Module, method: ast.Attribute) -> bool:
    return not SCALER_CLASSES.isdisjoint(project.values.made_by(module, method.value))


def names_native(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node is a name of native AMP."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return contexts.is_native(project.external(module, node))


def holds_native(project: Project, module: Module) -> bool:
    """Tell whether a file calls native AMP."""
    return any(is_native(project, module, node) for node in module.tree.nodes(ast.Call))


def mentions_native(project: Project, module: Module) -> bool:
    """Tell whether a file calls native AMP, or hands it on: ``autocast = torch.cuda.amp.autocast``."""
    named = module.tree.nodes(ast.Name, ast.Attribute)
    return holds_native(project, module) or any(names_native(project, module, n) for n in named)


def makes_scaler(project: Project, module: Module) -> bool:
    """Tell whether a file makes a GradScaler, so that its programs can choose native AMP."""
    calls = module.tree.nodes(ast.Call)
    return any(project.external(module, call.func) in SCALER_CLASSES for call in calls)


def _gives_backward(tree: Tree, call: ast.Call) -> bool:
    """Tell whether what a method returns for a loss runs backward: ``scaler.scale(loss).backward()``."""
    up = tree.parent(call)
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "scale"
    return named and len(call.args) == 1 and isinstance(up, ast.Attribute) and up.attr == "backward"


def _unscales(call: ast.Call) -> bool:
    """Tell whether a method is given an optimizer to unscale, which only a GradScaler has."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "unscale_"
    return named and len(call.args) + len(call.keywords) == 1


def beside_native(project: Project, site: Site) -> Arm | None:
    """Return the side of a test that holds the site and no native AMP, where its other branches hold some."""
    tree, module = site.module.tree, site.module
    for up, holds in tree.sides(site.node, lambdas=True):
        if isinstance(up, ast.If):
            own, other = (up.body, up.orelse) if holds else (up.orelse, up.body)
            if _in_block(project, module, [*other, *earlier(tree, up)]):
                alone = not _in_block(project, module, own)
                return Arm(module, up, "body" if holds else "orelse") if alone else None
    return None


def _in_block(project: Project, module: Module, body: list[ast.stmt]) -> bool:
    return any(is_native(project, module, n) for stmt in body for n in ast.walk(stmt))


def earlier(tree: Tree, node: ast.If | ast.IfExp) -> list[ast.stmt]:
    """Return the bodies of the tests before an `elif`."""
    found: list[ast.stmt] = []
    up = tree.parents.get(node)
    while isinstance(up, ast.If) and up.orelse == [node]:
        found += up.body
        node, up = up, tree.parents.get(up)
    return found
