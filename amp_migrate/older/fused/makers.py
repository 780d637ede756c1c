"""Which optimizers an `FP16_Optimizer` of apex.optimizers wraps, and which others the same names hold."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import replace

from amp_migrate.flow import Graphs, Kind, leads
from amp_migrate.older.feasible import feasible
from amp_migrate.older.found import Found
from amp_migrate.older.fp16.training import Fp16
from amp_migrate.older.wraps import Wrap
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Module
from amp_migrate.training.bindings import returned

Made = tuple[Module, ast.Call]


def fused(training: Fp16, found: Found) -> list[tuple[Fp16, list[Made]]]:
    """Return the parts of a training that share no FusedAdam and no step, with what makes their optimizers.

    Raises `Unwritable` where another optimizer may be wrapped.
    """
    result: list[tuple[Fp16, list[Made]]] = []
    for wrap in training.wraps:
        own: list[Made] = []
        others: list[Made] = []
        for module, call in _makers(training, wrap.module, wrap.inner, found):
            fused_adam = found.fused_name(module, call.func) == "FusedAdam"
            (own if fused_adam else others).append((module, call))
        if not own:
            raise _not_fused(wrap, next(_last_made(wrap, others, found), None), found)
        for other in others:
            _refuse_wrapped(wrap, other, own, found)
        part = replace(training, wraps=[wrap], groups=found.group(wrap.module, wrap.call))
        shared = [one for one in result if _meet(one, (part, own), found)]
        for one in shared:
            result.remove(one)
            part.wraps = [*one[0].wraps, *part.wraps]
            part.groups |= one[0].groups
            own = list(dict.fromkeys([*one[1], *own]))
        result.append((part, own))
    return result


def _meet(one: tuple[Fp16, list[Made]], other: tuple[Fp16, list[Made]], found: Found) -> bool:
    mine, theirs = ({call for _, call in made} for _, made in (one, other))
    if mine & theirs:
        return True
    steps = [{step for _, step, _ in steps_of(part, found, made)} for part, made in (one, other)]
    return bool(steps[0] & steps[1])


def steps_of(
    training: Fp16, found: Found, made: list[Made]
) -> list[tuple[Module, ast.Call, ast.expr]]:
    """Return the steps of the optimizers that are wrapped, with what they are called on."""
    calls = {call for _, call in made}
    return [
        (module, step, step.func.value)
        for module, step in found.method_calls("step")
        if isinstance(step.func, ast.Attribute)
        if found.groups(module, step.func.value) & training.groups
        or any(o.call in calls for o in found.made_with(module, step.func.value))
    ]


def others(
    training: Fp16, found: Found, module: Module, receiver: ast.expr, made: Iterable[Made]
) -> list[Made]:
    """Return the calls that make the other optimizers that an expression may hold, besides those that are wrapped."""
    calls = {call for _, call in made}
    return [one for one in _makers(training, module, receiver, found) if one[1] not in calls]


def _makers(training: Fp16, module: Module, node: ast.expr, found: Found) -> list[Made]:
    """Return the calls that make the optimizers that an expression may hold, without those that wrap them."""
    queue = [(module, node)]
    known: dict[ast.Call, Module] = {}
    result: list[Made] = []
    while queue:
        where, holds = queue.pop()
        calls = {o.call: o.module for o in found.made_with(where, holds)}
        calls |= dict.fromkeys(found.made_here(where, holds), where)
        for call, at in calls.items():
            if call in known:
                continue
            known[call] = at
            callees = found.project.callees(call)
            queue += [(f.module, value) for f in callees for value in returned(f)]
            if not callees or found.project.constructed(call):
                result.append((at, call))
    wraps = {wrap.call for wrap in training.wraps}
    return [(at, call) for at, call in result if call not in wraps]


def _last_made(wrap: Wrap, made: list[Made], found: Found) -> Iterator[Made]:
    """Yield the calls that may have made what is wrapped, those in its function that no other follows first."""
    function = found.project.function_of(wrap.module, wrap.call)
    graph = Graphs().of(function.scope)
    points = {call: [*graph.at(call, Kind.CALL)] for _, call in made}
    order, ends = feasible(found, graph), graph.at(wrap.call, Kind.CALL)
    for each in made:
        others = [p for call, at in points.items() if call is not each[1] for p in at]
        if points[each[1]] and leads(order, points[each[1]], ends, others):
            yield each
    yield from made


def _refuse_wrapped(wrap: Wrap, other: Made, own: list[Made], found: Found) -> None:
    """Refuse an optimizer of another class that may be the one that is wrapped."""
    function = found.project.function_of(wrap.module, wrap.call)
    makers = [found.project.function_of(module, call) for module, call in own]
    if found.project.function_of(*other) is function and all(maker is function for maker in makers):
        graph = Graphs().of(function.scope)
        order = feasible(found, graph)
        between = [p for _, call in own for p in graph.at(call, Kind.CALL)]
        starts, ends = (graph.at(call, Kind.CALL) for call in (other[1], wrap.call))
        if not leads(order, starts, ends, between):
            return
    raise _not_fused(wrap, other, found)


def _not_fused(wrap: Wrap, other: Made | None, found: Found) -> Unwritable:
    name = "an optimizer that is not seen here"
    why = "how anything but the FusedAdam of Apex steps with scaled gradients of fp16 weights is not known"
    if other is not None:
        module, call = other
        name = ast.unparse(call.func)
        of_torch = (found.project.external(module, call.func) or "").startswith("torch.optim.")
        if of_torch or found.fused_name(module, call.func) == "FusedLAMB":
            why = "its step() takes no gradients, so this raises under Apex"
    return Unwritable(
        wrap.module,
        wrap.call,
        f"this FP16_Optimizer may wrap {name}, and {why}",
        "make a FusedAdam of apex.optimizers in the function that wraps it, then run again",
    )
