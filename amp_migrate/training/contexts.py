"""The contexts that change what runs in them: autocast, and those without gradients."""

from __future__ import annotations

import ast
from enum import Enum

from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import AUTOCASTS, WITHOUT_GRADIENTS


class Context(Enum):
    """What a context manager does."""

    CASTS = "autocast"
    NO_CASTS = "autocast(enabled=False)"
    NO_GRAD = "no_grad"
    GRAD = "enable_grad"


def context(project: Project, module: Module, node: ast.expr) -> Context | None:
    """Return what entering the context of an expression does; None for any other one."""
    call = node if isinstance(node, ast.Call) else None
    name = project.external(module, call.func if call is not None else node)
    if name in AUTOCASTS and call is not None:
        return Context.NO_CASTS if _disabled(call) else Context.CASTS
    if name in WITHOUT_GRADIENTS:
        return Context.NO_GRAD
    if name == "torch.enable_grad":
        return Context.GRAD
    if name == "torch.set_grad_enabled" and call is not None and call.args:
        given = call.args[0]
        if isinstance(given, ast.Constant):
            return Context.GRAD if given.value else Context.NO_GRAD
    return None


def decorated(project: Project, function: Function) -> tuple[Context, ...]:
    """Return the contexts in which every run of a function stands."""
    if function.node is None:
        return ()
    found = [context(project, function.module, d) for d in function.node.decorator_list]
    return tuple(item for item in found if item is not None)


def _disabled(call: ast.Call) -> bool:
    return any(
        k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value
        for k in call.keywords
    )
