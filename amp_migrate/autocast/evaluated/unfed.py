"""Forward passes of initialized networks whose results feed no backward pass, whether gradients are kept or not."""

from __future__ import annotations

import ast

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.paths import called_alone, path
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.project.reach import reachable
from amp_migrate.training.contexts import in_autocast
from amp_migrate.training.forwards.classes import is_forward, is_network_class
from amp_migrate.training.forwards.forwards import Forward
from amp_migrate.training.steps import backward_of


def feeds_nothing(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether a forward that no training region holds computes no loss of a backward pass."""
    function = unit.project.function_of(module, node)
    if is_part(unit, module, node):
        return False
    apart = run_backward(unit, module, module.tree.statement(node)) is not None
    if not apart and unit.trains(module, _evaluated_with(module, node)):
        return False
    if _scales_elsewhere(unit, function):
        return False
    return not any(unit.losses.computes(b.function, b.loss, node) for b in unit.backwards)


def _evaluated_with(module: Module, node: ast.AST) -> ast.AST:
    """Return the whole expression that a node is a part of: of a loop what it goes over, and nothing of its body."""
    while isinstance(up := module.tree.parent(node), ast.expr | ast.keyword | ast.comprehension):
        node = up
    return node


def is_part(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether a forward stands under an autocast of the source, or in a method of a network or what only those call."""
    return _is_part(unit, unit.project.function_of(module, node), node, frozenset())


def _is_part(unit: Unit, function: Function, node: ast.AST, around: frozenset[Function]) -> bool:
    module, cls = function.module, function.class_around
    if cls is None:
        calls = unit.project.callers(function) if function not in around else []
        below = around | {function}
        return covered(unit, module, node) or (
            bool(calls)
            and not unit.project.escapes(function)
            and all(_is_part(unit, site.function, site.call, below) for site in calls)
        )
    if not is_network_class(cls):
        return covered(unit, module, node)
    trained = (f for f, _ in unit.trained() if f.class_around is cls)
    trains = any(not function.is_static for function in trained)
    return covered(unit, module, node) or not trains


def _scales_elsewhere(unit: Unit, function: Function) -> bool:
    """Tell whether a function scales a loss by what is not known to be Apex, or belongs to another unit."""
    own = {site.node for site in unit.of(Kind.SCALE_LOSS)}
    return any(
        isinstance(node.func, ast.Attribute) and node.func.attr == "scale_loss" and node not in own
        for node in function.calls
    )


def covered(unit: Unit, module: Module, node: ast.AST) -> bool:
    """Tell whether a forward stands under an autocast of the source, or is part of a network itself."""
    function = unit.project.function_of(module, node)
    return is_forward(function) or in_autocast(unit.project, module, node)


def run_backward(unit: Unit, module: Module, stmt: ast.stmt) -> ast.expr | None:
    """Return the loss that a statement computes and runs backward for none of the unit: ``criterion(output, target).backward()``."""
    call = called_alone(stmt)
    loss = backward_of(call) if call is not None else None
    if call is None or loss is None or path(loss) is not None or unit.project.callees(call):
        return None
    if any(call is known.node for known in (*unit.backwards, *unit.probes, *unit.beside)):
        return None
    return loss if unit.forwards.strength(module, loss) >= Forward.CRITERION else None


def runs_for_effect(unit: Unit, call: ast.Call) -> bool:
    """Tell whether a method that is called for what it does is seen to run parts of a network, and not to train it."""
    project, module = unit.project, unit.project.module_of(call)
    if unit.trains(module, module.tree.statement(call)):
        return False
    run = {f for callee in project.callees(call) for f in (callee, *reachable(project, callee))}
    return any(
        unit.forwards.call(function.module, part) is Forward.NETWORK
        for function in run
        for part in function.calls
        if not project.callees(part)
    )
