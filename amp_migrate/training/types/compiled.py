"""Functions that torch.jit.script compiles where they are defined: the patches of Apex did not reach what those call."""

from __future__ import annotations

from amp_migrate.project import Function, Project

_COMPILES = frozenset({"torch.jit.script", "torch.jit.script_method"})


def is_compiled(project: Project, function: Function) -> bool:
    """Tell whether a decorator compiles a function: O1 patched functions of Python, and this calls none."""
    decorators = function.node.decorator_list if function.node is not None else []
    return any(project.external(function.module, each) in _COMPILES for each in decorators)
