"""Pictures that a forward pass gets right where they are loaded: on the CPU, where neither Apex nor autocast casts."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import all_given, tail
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.training.beliefs import SHAPES
from amp_migrate.training.origins.losses import Losses

_LOADS = frozenset({"PILToTensor", "ToTensor", "pil_to_tensor", "to_tensor"})
_KEEPS = SHAPES | {"clone", "double", "float"}


def runs_on_cpu(project: Project, losses: Losses, module: Module, call: ast.Call) -> bool:
    """Tell whether all that a call is given was made of pictures in its function, and moved nowhere since."""
    if not _loads_pictures(project):
        return False
    function, given = project.function_of(module, call), all_given(call)
    return bool(given) and all(_is_there(project, losses, function, g, frozenset()) for g in given)


@once
def _loads_pictures(project: Project) -> bool:
    """Tell whether a project makes tensors of pictures anywhere."""
    return any(tail(call) in _LOADS for _, call in project.nodes(ast.Call))


def _is_there(
    project: Project, losses: Losses, where: Function, node: ast.AST, seen: frozenset[ast.AST]
) -> bool:
    if node in seen:
        return False
    seen |= {node}
    if isinstance(node, ast.Name):
        values = losses.reaching(where, node)
        return bool(values) and all(
            isinstance(value, ast.expr) and _is_there(project, losses, where, value, seen)
            for value in values
        )
    if isinstance(node, ast.Subscript):
        return _is_there(project, losses, where, node.value, seen)
    if not isinstance(node, ast.Call) or project.callees(node):
        return False
    name = project.external(where.module, node.func)
    made = [name] if name is not None else project.values.made_by(where.module, node.func)
    if made and all(each.startswith("torchvision.") for each in made):
        return all(each.rpartition(".")[2] in _LOADS for each in made)
    if name is not None or not isinstance(node.func, ast.Attribute):
        return False
    kept = node.func.attr in _KEEPS
    return kept and _is_there(project, losses, where, node.func.value, seen)
