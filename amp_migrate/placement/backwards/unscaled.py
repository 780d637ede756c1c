"""Whether a backward that Apex did not scale may run while AMP is on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from amp_migrate.apex.sites import Kind
from amp_migrate.facts.below import every, with_parts
from amp_migrate.facts.paths import path, uses
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.condition import Condition
from amp_migrate.flow.evaluate import evaluate
from amp_migrate.flow.refine import refine
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function, Module
from amp_migrate.project.order import Loop, inside, levels
from amp_migrate.project.reach import runs_one, upwards
from amp_migrate.training.bindings import spelt_out
from amp_migrate.training.origins.reaching import reaching
from amp_migrate.training.steps import Backward

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def is_scaled_natively(unit: Unit, backward: Backward) -> bool:
    """Tell whether a GradScaler of the source scales the loss of a backward, which is none of Apex then."""
    loss, module = backward.loss, backward.module
    if loss is None:
        return False
    made = reaching(unit.project).of(backward.function, loss) if isinstance(loss, ast.Name) else ()
    return all(_scales(unit, module, value) for value in made or (loss,))


def _scales(unit: Unit, module: Module, loss: ast.AST | None) -> bool:
    if not isinstance(loss, ast.Call) or not isinstance(loss.func, ast.Attribute):
        return False
    scaler = unit.losses.objects.scaler(module, loss.func.value)
    return loss.func.attr == "scale" and scaler is not None


def runs_on(unit: Unit, condition: Condition, backward: Backward, *, instead: bool) -> bool:
    """Tell whether a backward runs with AMP on, as `condition` says; no test around it may be known to ask for that.

    Of one that runs `instead` of a scaled one, such a test is taken for one that does, whatever it reads: but for one that asks
    for more than that, and where AMP is on in any case in this function.
    """
    known = NOTHING
    if condition.value is False or not _runs_beside(unit, backward):
        return False
    if condition.text:
        known = refine(NOTHING, ast.parse(condition.text, mode="eval").body, True) or NOTHING
    more = False
    for side, truth in backward.module.tree.sides(backward.node):
        test = _as_initialized(unit, backward.function, spelt_out(backward.module, side.test))
        if evaluate(test, known) is (not truth):
            return False
        more = more or _asks_more(test, known) or _asks_for_a_round(unit, backward, side)
    return not instead or more or _is_always_on(unit, condition, backward)


def _as_initialized(unit: Unit, function: Function, test: ast.expr) -> ast.expr:
    """Return a test by the names that an initialize sees what it reads by, where it holds the same under others."""
    values, here = unit.project.values, dict(_paths(function))
    known: dict[ast.AST, ast.expr] = {}
    for part in every(test):
        text = path(part)
        held = values.sources(function.module, here[text]) if text in here else frozenset()
        for site in unit.of(Kind.INITIALIZE) if held else ():
            if site.function is function:
                continue
            for named, other in _paths(site.function):
                if named != text and values.sources(site.module, other) == held:
                    known[part] = ast.parse(named, mode="eval").body
    return with_parts(test, known) if known else test


def _paths(function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables and attributes that a function reads, by their spelling."""
    for node in function.own_nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            text = path(node)
            if text is not None:
                yield text, node


def _runs_beside(unit: Unit, backward: Backward) -> bool:
    """Tell whether scaled backward passes run where one does: in its function, or in one that calls that, maybe by another call."""
    scaling = {other.function for other in unit.backwards if other.scaled}
    above = upwards(unit.project, backward.function)
    return (
        not scaling.isdisjoint(above)
        or any(
            runs_one(unit.project, call, scaling)
            for function in above
            for call in function.calls
            if not runs_one(unit.project, call, {backward.function})
        )
        or _overrides(unit, backward.function, scaling)
    )


def _overrides(unit: Unit, function: Function, scaling: AbstractSet[Function]) -> bool:
    """Tell whether a method stands in for a scaled one of a class whose method initializes AMP for its objects as well."""
    above = function.cls.mro() if function.cls is not None else []
    overridden = {cls.methods.get(function.name) for cls in above} & scaling
    return bool(overridden) and any(
        site.function.cls in above[1:] and above[0].method(site.function.name) is site.function
        for site in unit.of(Kind.INITIALIZE)
    )


def _asks_more(test: ast.expr, known: Assumption) -> bool:
    """Tell whether a test asks whether AMP is on and for a count as well."""
    parts = test.values if isinstance(test, ast.BoolOp) else []
    return any(evaluate(part, known) is not None for part in parts) and any(
        isinstance(part, ast.Compare) and isinstance(part.ops[0], _ORDERS) for part in parts
    )


def _asks_for_a_round(unit: Unit, backward: Backward, side: ast.If | ast.IfExp) -> bool:
    """Tell whether a test asks which round of a loop this is, and no loop initializes AMP: that is on in all rounds, or in none."""
    tree = backward.module.tree
    loops = [
        up
        for up in tree.ancestors(side)
        if isinstance(up, ast.For) and inside(tree, backward.node, up)
    ]
    rounds = {n for loop in loops for n in _counts(backward.module, loop)}
    return bool(rounds & uses(side.test)) and not any(
        isinstance(up, Loop)
        for site in unit.of(Kind.INITIALIZE)
        for up in levels(site.module.tree, site.node)
    )


def _counts(module: Module, loop: ast.For) -> Iterator[str]:
    """Yield the names by which a loop counts its rounds."""
    over = loop.iter if isinstance(loop.iter, ast.Call) else None
    called = module.scopes.builtin(over.func) if over is not None else ""
    target = loop.target
    if called == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    if called in ("enumerate", "range") and isinstance(target, ast.Name):
        yield target.id


def _is_always_on(unit: Unit, condition: Condition, backward: Backward) -> bool:
    """Tell whether the function of a backward initializes AMP whatever its tests say."""
    return bool(condition.value) and any(
        site.function is backward.function and not any(site.module.tree.sides(site.node))
        for site in unit.of(Kind.INITIALIZE)
    )
