"""Whether one scale_loss unscales the gradients of several optimizers, which Apex then skipped together."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.scopes import assigned
from amp_migrate.placement.backwards.scaled import ScaleLoss
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Module, Project
from amp_migrate.training.bindings import returned, unpacked


def are_several(unit: Unit, block: ScaleLoss) -> bool:
    """Tell whether a scale_loss is given several optimizers, or none of those that step one by one."""
    given = block.optimizer_list()
    if len(given) != 1:
        return len(given) > 1
    module = block.site.module
    meant = list(_meant(unit.project, module, given[0], set()))
    if any(value is not None and _holds_several(value) for value in meant):
        return True
    if None not in meant:
        return False
    values = unit.project.values
    stepped = {values.groups(step.module, step.optimizer) for step in unit.steps}
    groups = values.groups(module, given[0])
    return len(stepped) > 1 and not any(groups & one for one in stepped)


def _holds_several(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return len(node.elts) > 1
    return isinstance(node, ast.ListComp)


def _meant(
    project: Project, module: Module, node: ast.expr, seen: set[ast.AST]
) -> Iterator[ast.expr | None]:
    """Yield what names, attributes and parameters were assigned, and functions return; None for what nothing in sight gives."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Attribute):
        for where in project.modules.values():
            for stored in where.tree.nodes(ast.Attribute):
                if not isinstance(stored.ctx, ast.Store) or stored.attr != node.attr:
                    continue
                if project.values.same(module, node.value, where, stored.value):
                    value = assigned(where.tree, stored)
                    if value is not None:
                        yield from _meant(project, where, value, seen)
    elif isinstance(node, ast.Name):
        scope = module.scopes.owner(node)
        for binding in module.scopes.bindings(scope, node.id) if scope is not None else ():
            value = assigned(module.tree, binding)
            if value is not None:
                yield from _meant(project, module, value, seen)
            elif isinstance(binding, ast.arg):
                yield from _given(project, module, binding, seen)
            else:
                for part in unpacked(project, module, binding):
                    yield from _meant(project, project.module_of(part), part, seen)
    elif isinstance(node, ast.IfExp):
        for arm in (node.body, node.orelse):
            yield from _meant(project, module, arm, seen)
    elif isinstance(node, ast.Call) and project.callees(node):
        for function in project.callees(node):
            for given in returned(function):
                yield from _meant(project, function.module, given, seen)
    else:
        yield node


def _given(
    project: Project, module: Module, parameter: ast.arg, seen: set[ast.AST]
) -> Iterator[ast.expr | None]:
    function = project.function_of(module, parameter)
    arguments = [
        (site.function.module, project.arguments(site, function).get(parameter.arg))
        for site in project.calls_of(function)
    ]
    if not arguments:
        yield None
    for where, argument in arguments:
        if argument is not None:
            yield from _meant(project, where, argument, seen)
