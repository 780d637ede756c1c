"""Steps by methods that variables hold: ``step = optimizer.step``, and ``step()`` where the gradients are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.paths import outward
from amp_migrate.flow import Kind as At
from amp_migrate.flow import leads
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.project.order import Loop
from amp_migrate.project.programs import is_touched_elsewhere
from amp_migrate.project.reach import set_later
from amp_migrate.project.rounds import graph_of, points_of_all
from amp_migrate.training.origins.meant import may_be_none
from amp_migrate.training.origins.reaching import reaching
from amp_migrate.training.reads.named_methods import NamedMethods
from amp_migrate.training.steps import Step
from amp_migrate.values.objects import Method


def held(unit: Unit, module: Module, call: ast.Call) -> ast.expr | None:
    """Return the optimizer that a call steps by what a variable holds, where its name means the same at the call."""
    method = _method(unit, module, call)
    if method is None or method.module is not module:
        return None
    optimizer, function = method.node.value, unit.project.function_of(module, call)
    alone = len(unit.losses.objects.optimizers_of(module, optimizer)) == 1
    if not alone or is_from_before(unit, module, call, method) is not False:
        return None
    stays = _stays(unit, function, call, method.node)
    return optimizer if stays and not may_be_none(unit.project, module, optimizer) else None


def methods_run(unit: Unit, module: Module, call: ast.Call) -> list[Method]:
    """Return the methods of objects of libraries that a call runs without spelling them; by a variable, what that was bound to last."""
    function = unit.project.function_of(module, call)
    return NamedMethods(unit.project, reaching(unit.project)).run(function, call)


def _method(unit: Unit, module: Module, call: ast.Call) -> Method | None:
    """Return the one method of a library's object that a call runs by a variable, where that steps."""
    if call not in unit.project.values.methods_called or not isinstance(call.func, ast.Name):
        return None
    found = methods_run(unit, module, call)
    return found[0] if len(found) == 1 and found[0].node.attr == "step" else None


def _stays(unit: Unit, function: Function, call: ast.Call, method: ast.Attribute) -> bool:
    """Tell whether an optimizer goes by the same name where a function calls its method as where that is read."""
    *parts, start = outward(method.value)
    later = set_later(unit.project)
    if not all(isinstance(part, ast.Attribute) and part.attr not in later for part in parts):
        return False
    scopes, tree = function.module.scopes, function.module.tree
    if not isinstance(start, ast.Name) or (owner := scopes.owner(start)) is None:
        return False
    if scopes.find(scopes.scope_of(call), start.id) is not owner:
        return False
    stores = scopes.bindings(owner, start.id)
    if owner is not function.scope:
        looped = (up for s in stores for up in tree.ancestors(s) if isinstance(up, Loop))
        return owner is tree.module and not any(looped)
    order = graph_of(unit.project, function).order(exceptions=False)
    read, called, between = (
        points_of_all(unit.project, function, nodes) for nodes in ([method], [call], stores)
    )
    return not any(leads(order, read, [at]) and leads(order, [at], called, read) for at in between)


def is_from_before(unit: Unit, module: Module, call: ast.Call, method: Method) -> bool | None:
    """Tell whether a call steps by a method that was read before a block which may have put another in its place: Apex skips by that.

    None stands for what is not known, as the three do not stand in one function.
    """
    function = unit.project.function_of(module, call)
    if method.module is not module or unit.project.function_of(module, method.node) is not function:
        return None
    graph = graph_of(unit.project, function)
    blocks = [site.statement for site in unit.of(Kind.SCALE_LOSS) if site.function is function]
    ends = [p for block in blocks for p in graph.within(block) if p.kind is At.LEAVE]
    read, called = (points_of_all(unit.project, function, [node]) for node in (method.node, call))
    return leads(graph.order(exceptions=False), ends, called, read) if ends else None


def spent(unit: Unit, steps: Sequence[Step]) -> Iterator[ast.Assign]:
    """Yield the statements that give a method to a variable which nothing but some steps reads."""
    calls = {step.call for step in steps}
    for method in dict.fromkeys(_method(unit, step.module, step.call) for step in steps):
        up = method.module.tree.parent(method.node) if method is not None else None
        if method is None or not isinstance(up, ast.Assign) or len(up.targets) != 1:
            continue
        tree, scopes, target = method.module.tree, method.module.scopes, up.targets[0]
        if not isinstance(target, ast.Name) or len(tree.block(up)) < 2:
            continue
        owner = scopes.owner(target)
        reads = [tree.call_of(name) for name in scopes.reads(owner, target.id)]
        seen = owner is not tree.module or not is_touched_elsewhere(
            unit.project, method.module, target.id
        )
        if seen and len(scopes.bound(target)) == 1 and calls.issuperset(reads):
            yield up
