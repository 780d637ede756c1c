"""Calls of torch that differentiate: ``torch.autograd.grad`` and ``torch.autograd.backward``."""

from __future__ import annotations

import ast

from amp_migrate.project import Module, Project

_GRAD = "torch.autograd.grad"
_BACKWARD = "torch.autograd.backward"


def takes_gradients(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call takes gradients by ``torch.autograd.grad``."""
    return project.external(module, call.func) == _GRAD


def runs_backward(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is ``torch.autograd.backward``, which takes the loss as an argument."""
    return project.external(module, call.func) == _BACKWARD


def differentiates(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call is one of the two."""
    return project.external(module, call.func) in (_GRAD, _BACKWARD)
