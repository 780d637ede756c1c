"""How a program names the GPU of its process, where it sets it by `torch.cuda.set_device`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import argument, defs, path, walk
from amp_migrate.placement.backwards.freezing import frozen_before
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_set
from amp_migrate.rules.rest.found.calls import is_constant
from amp_migrate.rules.rest.found.uses import Obstacle

CURRENT = "torch.cuda.current_device()"
_SETS = "torch.cuda.set_device"
_TORCH = "torch.nn.parallel.DistributedDataParallel"


def device(project: Project, module: Module, call: ast.Call) -> str:
    """Return what the program set as the device of its process, as it reads at a call: ``args.local_rank``.

    Where torch's class is given one in the other arm of a test, for the same network, it is that.
    """
    if (twin := _twin_device(project, module, call)) is not None:
        return twin
    here = project.function_of(module, call)
    given = list(_given(project, module))
    own = [item for item in given if item[0] is here]
    texts = {path(node) for _, node in own or given}
    text = texts.pop() if len(texts) == 1 else None
    if text is not None and own and _is_bound_once(module, own[0][1], call):
        return text
    if text is not None and own and _is_kept(project, module, here, own[0][1]):
        return text
    if text is None or "." not in text or not stays(project, module, text.rpartition(".")[2]):
        return CURRENT
    return text if own or _reads(here, text) else CURRENT


def allows_unused(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether torch's class, in the other arm of a test, is told that parameters of the network may get no gradient."""
    twin = _twin(project, module, call)
    told = _keyword(twin, "find_unused_parameters")
    return told is not None and is_constant(told, True)


def frozen(project: Project, module: Module, call: ast.Call, wrapped: ast.expr) -> Obstacle | None:
    """Return why torch's class cannot wrap a network of which nothing is trained, None where something may be."""
    if not frozen_before(project, module, call, wrapped):
        return None
    return Obstacle(
        "torch's DistributedDataParallel raises for a network none of whose parameters require gradients, as this one is "
        "frozen above",
        "use the network without a wrapper, and without `.module`: it has nothing to reduce",
    )


def _twin_device(project: Project, module: Module, call: ast.Call) -> str | None:
    twin = _twin(project, module, call)
    ids = _keyword(twin, "device_ids")
    if twin is None or not isinstance(ids, ast.List) or len(ids.elts) != 1:
        return None
    text = path(ids.elts[0])
    made = {node for stmt in _arm(module, twin) for node in defs(stmt)}
    return text if text is not None and text.partition(".")[0] not in made else None


def _keyword(call: ast.Call | None, name: str) -> ast.expr | None:
    return argument(call, name) if call is not None else None


def _twin(project: Project, module: Module, call: ast.Call) -> ast.Call | None:
    """Return the call of torch's class for the same network in the other arm of the test around a call, or around its `try`."""
    tree = module.tree
    up: ast.AST | None = tree.parent(call)
    if isinstance(up, ast.IfExp):
        parts: list[ast.AST] = [up.orelse if up.body is call else up.body]
    else:
        statement: ast.AST = tree.statement(call)
        up = tree.parent(statement)
        while isinstance(up, ast.Try | ast.With):  # around what the arm does
            statement, up = up, tree.parent(up)
        if not isinstance(up, ast.If):
            return None
        parts = [*(up.orelse if statement in up.body else up.body)]
    found = [
        node
        for part in parts
        for node in walk(part)
        if isinstance(node, ast.Call)
        and project.external(module, node.func) == _TORCH
        and node.args
        and call.args
        and path(node.args[0]) == path(call.args[0]) is not None
    ]
    return found[0] if len(found) == 1 else None


def _arm(module: Module, node: ast.AST) -> list[ast.stmt]:
    """Return the statements of the arm that a node stands in."""
    up = module.tree.parent(module.tree.statement(node))
    return [*up.body, *up.orelse] if isinstance(up, ast.If) else []


def _is_bound_once(module: Module, node: ast.expr, call: ast.Call) -> bool:
    """Tell whether a device is a variable that means the same at a call: a parameter, or one that is set once."""
    if not isinstance(node, ast.Name):
        return False
    scopes = module.scopes
    return scopes.sees(scopes.scope_of(call), node) and len(scopes.bound(node)) == 1


def _is_kept(project: Project, module: Module, function: Function, node: ast.expr) -> bool:
    """Tell whether a device is an attribute of the own object that its constructors alone set."""
    if not isinstance(node, ast.Attribute) or not function.is_receiver(node.value):
        return False
    written = [
        project.function_of(where, stored).name
        for where, stored in where_set(project, node.attr)
        if project.values.same(module, node.value, where, stored.value)
    ]
    return bool(written) and set(written) == {"__init__"}


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
        for node in near.tree.attributes(name)
        if not isinstance(node.ctx, ast.Load)
    ]
    return written in ([], ["__init__"])


def _reads(function: Function, text: str) -> bool:
    return any(isinstance(n, ast.Attribute) and path(n) == text for n in function.own_nodes)
