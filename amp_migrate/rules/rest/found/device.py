"""How a program names the GPU of its process, where it sets it by `torch.cuda.set_device`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import path, walk
from amp_migrate.project import Function, Module, Project

CURRENT = "torch.cuda.current_device()"
_SETS = "torch.cuda.set_device"


def device(project: Project, module: Module, call: ast.Call) -> str:
    """Return what the program set as the device of its process, as it reads at a call: ``args.local_rank``."""
    here = project.function_of(module, call)
    given = list(_given(project, module))
    own = [item for item in given if item[0] is here]
    texts = {path(node) for _, node in own or given}
    text = texts.pop() if len(texts) == 1 else None
    if text is not None and own and _is_bound_once(module, own[0][1], call):
        return text
    if text is None or "." not in text or not stays(project, module, text.rpartition(".")[2]):
        return CURRENT
    return text if own or _reads(here, text) else CURRENT


def _is_bound_once(module: Module, node: ast.expr, call: ast.Call) -> bool:
    """Tell whether a device is a variable that means the same at a call: a parameter, or one that is set once."""
    if not isinstance(node, ast.Name):
        return False
    scopes = module.scopes
    owner = scopes.owner(node)
    here = scopes.find(scopes.scope_of(call), node.id)
    return owner is not None and owner is here and len(scopes.bindings(owner, node.id)) == 1


def _given(project: Project, module: Module) -> Iterator[tuple[Function, ast.expr]]:
    """Yield the devices that are set in the programs of a file, with the functions that do."""
    for near in project.connected_with([module]):
        for call in near.tree.nodes(ast.Call):
            if call.args:
                if project.external(near, call.func) == _SETS:
                    yield project.function_of(near, call), call.args[0]


def stays(project: Project, module: Module, name: str) -> bool:
    """Tell whether an attribute is what the command line says, or is written once, in a constructor.

    Then all that have an attribute of this name in a program mean the same by it.
    """
    written = [
        project.function_of(near, node).name
        for near in project.connected_with([module])
        for node in near.tree.nodes(ast.Attribute)
        if node.attr == name and not isinstance(node.ctx, ast.Load)
    ]
    return written in ([], ["__init__"])


def _reads(function: Function, text: str) -> bool:
    return any(isinstance(n, ast.Attribute) and path(n) == text for n in walk(function.scope))
