"""Whether what Apex skipped is what GradScaler skips: several optimizers together, and none by methods taken before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import STEPS, Claims
from amp_migrate.check.events.held import by_held
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.paths import argument
from amp_migrate.flow.cfg.points import Kind as At
from amp_migrate.flow.paths import leads
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import scales_loss, scaling_calls
from amp_migrate.training.events import Kind
from amp_migrate.training.origins.meant import are_several

_BEFORE = (
    "steps by a method from before Apex put one in its place that skips, and a GradScaler skips:"
)
_APART = "steps without what Apex skipped together with it, and no rule says so:"


def apart(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the optimizers that one scale_loss is given, whose steps a GradScaler takes or skips one by one."""
    for name in changed(old, new):
        stay = {ast.unparse(c) for f in new.functions[name] for c in _blocks(new, f)}
        for function in old.functions[name]:
            for call in _blocks(old, function):
                given = argument(call, "optimizers", 1)
                place = Place(function.module.path, call.lineno)
                if given is None or ast.unparse(call) in stay or claims.note(STEPS, place):
                    continue
                if are_several(old.project, function.module, given):
                    what = f"`{ast.unparse(given)}` {_APART}"
                    yield name, Difference((Step(Label(what), place, place),))


def unskipped(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the steps by methods that may have been taken before Apex put others in their place, which a GradScaler takes."""
    for name in changed(old, new):
        scaled = {
            str(new.labels.of_call(function, event.node))
            for function in new.functions[name]
            for held in new.program.training.of(function).values()
            for event in held
            if event.kind is Kind.STEP and event.scaler is not None
            if isinstance(event.node, ast.Call)
        }
        for function in old.functions[name] if scaled else ():
            for call in function.calls:
                label = by_held(old.program, function, call)
                if label is not None and str(label) in scaled and not _is_new(old, function, call):
                    yield differs(function, call, f"`{ast.unparse(call)}` {_BEFORE}", gone=True)


def _is_new(side: Side, function: Function, call: ast.Call) -> bool:
    """Tell whether the methods that a call runs were read in its function, since the last scaled loss ended there."""
    graph, blocks = side.program.graph(function), set(_blocks(side, function))
    ends = [
        point
        for point in graph.points
        if point.kind is At.LEAVE and getattr(point.node, "context_expr", None) in blocks
    ]
    order = graph.order(exceptions=False)
    return bool(ends) and all(
        bool(read := graph.at(method.node)) and not leads(order, ends, graph.at(call), read)
        for method in side.program.training.named_methods.run(function, call)
    )


def _blocks(side: Side, function: Function) -> Iterator[ast.Call]:
    """Yield the calls of a function that enter a scaled loss of Apex."""
    return (
        c
        for c in function.calls
        if c in scaling_calls(side.project) and scales_loss(side.project, function.module, c)
    )
