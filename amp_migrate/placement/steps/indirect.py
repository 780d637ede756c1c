"""Steps that a function takes through a helper: ``step_if_finite(optimizer, norm)``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.facts.paths import defs, path, uses, walk
from amp_migrate.placement.reads.gradients import Use
from amp_migrate.placement.reads.unscale import Unscale
from amp_migrate.placement.steps.one_of_several import handles_overflow, inside_helper
from amp_migrate.placement.steps.skipped import accumulates, jumps
from amp_migrate.placement.steps.steps import Step, boundary
from amp_migrate.project import CallSite, Function
from amp_migrate.unit.cannot import Cannot, spoken
from amp_migrate.unit.order import Loop, dominates, key, levels
from amp_migrate.unit.unit import Unit


@dataclass(frozen=True, eq=False, slots=True)
class Indirect:
    """A step of a helper: `seen` is its call with the optimizer given there, `own` the step in the helper."""

    seen: Step
    own: Step
    site: CallSite


def indirect(unit: Unit, function: Function, gone: set[ast.AST]) -> list[Indirect]:
    """Return the steps that a function takes through helpers, of optimizers that it gives them or their object has."""
    return [
        Indirect(step, own, site)
        for own in unit.steps
        if own.call not in gone and own.function is not function
        for site in unit.project.calls_of(own.function)
        if site.function is function and (step := seen(unit, own, site)) is not None
    ]


def seen(unit: Unit, own: Step, site: CallSite) -> Step | None:
    """Return the step of a helper as a call of it takes it; None where the optimizer is out of reach there."""
    module, call = site.function.module, site.call
    base, _, rest = (path(own.optimizer) or "").partition(".")
    if any(base in defs(stmt) for stmt in own.function.scope.body):
        return None
    anchor = module.tree.statement(call)
    given = unit.project.arguments(site, own.function).get(base)
    if given is not None and given not in set(ast.walk(call)):
        return None  # handed on from the function's own ``*args``
    if given is not None:
        text = ".".join([module.tree.segment(given), *([rest] if rest else [])])
        return Step(module, site.function, call, given, anchor, text)
    names = own.function.parameters.names
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    own_object = bool(names) and site.bound and base == names[0]
    if receiver is None or not own_object or path(receiver) is None or not rest:
        return None
    text = f"{module.tree.segment(receiver)}.{rest}"
    return Step(module, site.function, call, receiver, anchor, text)


def unscale_through(
    unit: Unit, through: Indirect, text: str, first: ast.stmt, found: list[Use]
) -> Unscale:
    """Unscale in front of reads whose step a helper takes."""
    seen = through.seen
    result = Unscale(seen.function, first, text)
    limit = boundary(seen, first)
    between = [
        stmt
        for stmt in walk(seen.function.scope)
        if isinstance(stmt, ast.Expr | ast.Assign | ast.AugAssign | ast.Return)
        and key(first) < key(stmt) < key(seen.anchor)
    ]
    apart = [stmt for stmt in between if unit.trains(seen.module, stmt)]
    left = [jump for jump in jumps(seen, first) if not handles_overflow(unit, seen, jump, found)]
    if limit is not None or apart or left:
        raise Cannot(
            "AMP908",
            seen.module,
            seen.call,
            f"{spoken(through.own.function)} steps here, and does not always follow the place where the gradients are read",
            "read the gradients straight before this call, on every way to it, then run again",
        )
    written = {name for use in found for name in defs(use.statement)}
    if _decided_by_norm(unit, through, first, written):
        result.decided = through.own
    result.inside = inside_helper(unit, through, found)
    return result


def _decided_by_norm(unit: Unit, through: Indirect, before: ast.stmt, written: set[str]) -> bool:
    """Tell whether a helper may leave out its step, which the norm that it is given decides.

    Gradients are unscaled in front of `before`, and their reads assign `written`. Raises `Cannot` where anything
    else decides: the `update()` of the helper must follow every `unscale_`.
    """
    own, seen = through.own, through.seen
    around = [level for level in levels(own.tree, own.anchor) if level is not own.anchor]
    jumps = [
        node
        for node in walk(own.function.scope)
        if isinstance(node, ast.Return) and key(node) < key(own.call)
    ]
    around += [level for jump in jumps for level in levels(own.tree, jump) if level is not jump]
    tests = [level for level in around if isinstance(level, ast.If)]
    looped = any(isinstance(level, Loop) for level in around)
    if not tests and not looped:
        return False
    given = unit.project.arguments(through.site, own.function)
    norms = {name for name, node in given.items() if uses(node) & written}
    sure = not looped and all(
        uses(test.test) & norms and not accumulates(unit, own.function, own.anchor, test)
        for test in tests
    )
    alone = len(unit.project.callers(own.function)) == 1
    if not (sure and alone and dominates(seen.tree, before, seen.call)):
        raise Cannot(
            "AMP908",
            own.module,
            own.call,
            f"{spoken(own.function)} does not step whenever it is called, and the gradients are read before the call",
            f"read the gradients in {spoken(own.function)} straight before this step, then run again",
        )
    return True
