"""Whether a function that code out of sight calls may have an object that runs some method."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.project import Class, Function, Module, Project
from amp_migrate.project.programs import run_by
from amp_migrate.project.reach import reachable
from amp_migrate.project.relatives import runs

_LOOKS_UP = frozenset({"getattr", "globals", "__import__", "eval", "exec", "vars"})
_IMPORTS = "importlib.import_module"


def may_come_to(project: Project, entry: Function, functions: Collection[Function]) -> bool:
    """Tell whether a function that code out of sight calls may come to one of some functions.

    It comes to a method on an object alone: of a class that is named, other than to derive from it, in what it reaches or at
    the top level of a file that its own may import. One that is given something, or looks up names, may have any object.
    """
    reached = set(functions) & reachable(project, entry)
    if entry.cls is not None or entry.parameters.names or any(f.cls is None for f in reached):
        return True
    ran = [project.modules[path].top for path in run_by(project, entry.module.path)]
    named: set[Class] = set()
    for function in (*reachable(project, entry), *ran):
        if any(_looks_up(project, function.module, call) for call in function.calls):
            return True
        named.update(_named(project, function.module, function))
    return not reached or any(runs(cls, method) for cls in named for method in reached)


def _looks_up(project: Project, module: Module, call: ast.Call) -> bool:
    return (
        module.scopes.builtin(call.func) in _LOOKS_UP
        or project.external(module, call.func) == _IMPORTS
    )


def _named(project: Project, module: Module, function: Function) -> Iterator[Class]:
    """Yield the classes that a function names, other than as a base of another one."""
    for node in function.own_nodes:
        up = module.tree.parent(node)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            if not isinstance(up, ast.ClassDef) or node not in up.bases:
                yield from (m for m in project.meanings(module, node) if isinstance(m, Class))
