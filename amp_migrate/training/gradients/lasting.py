"""Functions that may run beyond a window of gradients: what they keep of these may outlive the scale."""

from __future__ import annotations

import ast

from amp_migrate.facts.imports import last_name
from amp_migrate.project import Function, Project
from amp_migrate.project.reach import reachable

_ENDS = frozenset({"backward", "grad", "step", "update", "zero_grad"})


def may_end_a_window(project: Project, function: Function) -> bool:
    """Tell whether a function, or what it calls, may step, clear gradients or run a backward."""
    return any(
        last_name(call) in _ENDS or _is_handed(project, ran, call)
        for ran in reachable(project, function)
        for call in ran.calls
    )


def _is_handed(project: Project, function: Function, call: ast.Call) -> bool:
    """Tell whether a call runs what its function was given, and which that is is not known."""
    if not isinstance(call.func, ast.Name) or project.callees(call):
        return False
    bound = function.module.scopes.bound(call.func)
    return any(isinstance(binding, ast.arg) for binding in bound)
