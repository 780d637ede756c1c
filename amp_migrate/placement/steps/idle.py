"""Optimizers that are made and initialized, and that nothing steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.apex.passthrough import target
from amp_migrate.facts.paths import LOOKS
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.steppers import makes_schedule, may_train

_ASKED = frozenset({"param_groups", "state", "state_dict", "load_state_dict", "zero_grad", "defaults"})  # fmt: skip
_TESTS = (ast.Compare, ast.If, ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Assert)
_INITIALIZE = "apex.amp.initialize"


def is_idle(project: Project, module: Module, optimizer: ast.expr) -> bool:
    """Tell whether all uses of an optimizer are seen, and none steps it or hands it to code that may."""
    groups = project.values.groups(module, optimizer)
    if may_train(project, project.function_of(module, optimizer)):
        return False
    return bool(groups) and all(
        _is_harmless(project, where, node)
        for where, node in _read(project)
        if project.values.groups(where, node) & groups
    )


def _read(project: Project) -> Iterator[tuple[Module, ast.expr]]:
    for module in project.modules.values():
        named = module.tree.nodes(ast.Name, ast.Attribute)
        yield from ((module, node) for node in named if isinstance(node.ctx, ast.Load))


def _is_harmless(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an optimizer only goes on under another name here, or is asked for what no step is."""
    up = module.tree.parent(node)
    if isinstance(up, ast.Attribute):
        return up.attr in _ASKED
    if isinstance(up, ast.keyword | ast.Starred):
        up = module.tree.parent(up)
    if isinstance(up, ast.Call):
        return node is not up.func and _only_takes(project, module, up, node)
    if isinstance(up, ast.Assign | ast.AnnAssign):
        return all(_keeps(project, module, each) for each in targets_of(up))
    if isinstance(up, ast.Return):
        return bool(project.callers(project.function_of(module, up)))
    return isinstance(up, _TESTS)


def _keeps(project: Project, module: Module, target: ast.expr) -> bool:
    """Tell whether an optimizer is assigned to a name, or to an attribute of an object whose code is all seen."""
    if isinstance(target, ast.Attribute):
        function = project.function_of(module, target)
        named = function.is_receiver(target.value)
        return named and function.cls is not None and all(map(_is_seen, function.cls.externals()))
    return isinstance(target, ast.Name)


def _is_seen(base: str) -> bool:
    """Tell whether a base out of sight runs nothing that steps an optimizer which its objects keep."""
    return base.rpartition(".")[2] in {"object", "ABC"} or makes_schedule(base)


def _only_takes(project: Project, module: Module, call: ast.Call, node: ast.expr) -> bool:
    """Tell whether a call hands an optimizer to a parameter that is seen, to a schedule, or only looks at it."""
    name = project.external(module, call.func) or ""
    initializes = _INITIALIZE in (project.apex(module, call.func), target(project, call))
    if initializes or makes_schedule(name):
        return True
    if (builtin := module.scopes.builtin(call.func)) is not None:
        return builtin in LOOKS
    callees = project.callees(call)
    if name == "functools.partial" and call.args:
        taken = project.resolve(module, call.args[0])
        callees = [taken] if isinstance(taken, Function) else []
    if not callees:
        return _is_schedule(project, module, call)
    return all(
        any(v is node and n in f.parameters.names for n, v in project.given(call, f).items())
        for f in callees
    )


def _is_schedule(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a call makes a schedule of a class of the project, or runs the constructor of its base."""
    classes = list(project.constructed(call))
    function = project.function_of(module, call)
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr == "__init__" and function.cls is not None:
        classes = [function.cls]
    return bool(classes) and all(any(map(makes_schedule, c.externals())) for c in classes)
