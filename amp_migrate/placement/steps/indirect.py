"""Steps that a function takes through a helper: ``step_if_finite(optimizer, norm)``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from amp_migrate.facts.paths import called_on, defs, is_place, root
from amp_migrate.flow import Point
from amp_migrate.placement.finding.renamed import at_entry
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import CallSite, Function
from amp_migrate.project.reach import reachable
from amp_migrate.project.rounds import graph_of, points_of
from amp_migrate.protocol.code.turns import turns_of
from amp_migrate.training.steps import Step


@dataclass(frozen=True, eq=False, slots=True)
class Indirect:
    """A step of a helper: `seen` is its call with the optimizer given there, `own` the step in the helper."""

    seen: Step
    own: Step
    site: CallSite


def indirect(unit: Unit, function: Function) -> list[Indirect]:
    """Return the steps that a function takes through helpers, of optimizers that it gives them or their object has.

    Of a call that may run a method which steps, and one that leaves the step to it, the first counts: they wrap one optimizer.
    """
    taken = [*unit.live_steps()]
    own_steps = len(taken)
    for own in taken:
        taken += _handed_up(unit, own, {step.function for step in taken})
    direct = _through(unit, function, taken[:own_steps])
    calls = {step.site.call for step in direct}
    handed = _through(unit, function, taken[own_steps:])
    return direct + [step for step in handed if step.site.call not in calls]


def _through(unit: Unit, function: Function, taken: list[Step]) -> list[Indirect]:
    """Return the steps of helpers as the calls of a function take them."""
    return [
        Indirect(step, own, site)
        for own in taken
        if own.function is not function
        for site in unit.project.calls_of(own.function)
        if site.function is function and (step := seen(unit, own, site)) is not None
    ]


def _handed_up(unit: Unit, own: Step, stepping: set[Function]) -> list[Step]:
    """Return the steps of helpers that leave a step to one that always takes it and runs no backward."""
    project, helper = unit.project, own.function
    graph = graph_of(project, helper)
    order = graph.order(exceptions=False)
    always = order.must_reach(graph.entry, points_of(project, helper, own.call))
    running = {backward.function for backward in unit.backwards}
    if not always or not running.isdisjoint(reachable(project, helper)):
        return []
    return [
        step
        for site in project.calls_of(helper)
        if site.function not in stepping and site.function.node is not None
        if (step := seen(unit, own, site)) is not None
    ]


def seen(unit: Unit, own: Step, site: CallSite) -> Step | None:
    """Return the step of a helper as a call of it takes it; None where the optimizer is out of reach there."""
    module, call = site.function.module, site.call
    text = at_entry(unit, own)
    if text is None:
        return None
    base = text.partition(".")[0] if text != own.text else ""
    if text == own.text and is_place(own.optimizer):
        base = root(own.optimizer) or ""
    rest = text[len(base) :]
    if any(base in defs(stmt) for stmt in own.function.scope.body):
        return None
    anchor = anchored(unit, site)
    given = unit.project.arguments(site, own.function).get(base)
    if given is not None and given not in set(ast.walk(call)):
        return None  # handed on from the function's own ``*args``
    if given is not None:
        text = module.tree.segment(given) + rest
        return Step(module, site.function, call, given, anchor, text)
    if _is_shared(own, site, base):
        return Step(module, site.function, call, own.optimizer, anchor, text)
    names = own.function.parameters.names
    receiver = called_on(call)
    own_object = bool(names) and site.bound and base == names[0]
    if receiver is None or not own_object or not is_place(receiver) or not rest:
        return None
    text = module.tree.segment(receiver) + rest
    return Step(module, site.function, call, receiver, anchor, text)


def anchored(unit: Unit, site: CallSite) -> ast.stmt:
    """Return the statement of a call, or the loop over exactly one item, as one callback, that does nothing else."""
    tree = site.function.module.tree
    found = tree.statement(site.call)
    up = tree.parent(found)
    while isinstance(up, ast.For) and up.body == [found] and not up.orelse:
        if not turns_of(unit.project).once(site.function, up):
            break
        found, up = up, tree.parent(up)
    return found


def _is_shared(own: Step, site: CallSite, name: str) -> bool:
    """Tell whether a helper steps what a variable around it holds that its caller reads as well."""
    scopes, helper = own.module.scopes, own.function.scope
    owner = scopes.find(helper, name)
    if owner is None or owner is helper or own.module is not site.function.module:
        return False
    return scopes.find(site.function.scope, name) is owner


def taken_like(unit: Unit, own: Step) -> list[Point]:
    """Return where the function of a step steps the same optimizer, in whatever branch."""
    text = at_entry(unit, own)
    steps = [s for s in unit.steps_of(own.function) if text and at_entry(unit, s) == text]
    calls = [own.call, *(s.call for s in steps if s is not own)]
    return [point for call in calls for point in points_of(unit.project, own.function, call)]
