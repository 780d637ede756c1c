"""Whether a GradScaler begins with a loss scale that Apex was only set to behind what loads or trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, differs, key
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.constants import number
from amp_migrate.facts.paths import argument
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function
from amp_migrate.project.reach import reachable

_SCALE = "loss_scale"


def late(old: Side, new: Side, every: Sequence[Initialize]) -> Iterator[tuple[Key, Difference]]:
    """Yield the GradScalers made with a scale that the same function of the old text set behind a load or a backward."""
    for module, call in new.program.training.objects.made_scalers:
        first = argument(call, "init_scale")
        function = new.project.function_of(module, call)
        name = key(function)
        if first is None or not any(key(item.function) == name for item in every):
            continue
        sets = [
            _comes_late(old, before, node, every)
            for before in old.functions.get(name, ())
            for node in before.own_nodes
            if isinstance(node, ast.Assign) and _sets(node, first)
        ]
        if sets and all(sets):
            text = f"init_scale={ast.unparse(first)} of the GradScaler comes before what Apex loaded or scaled first:"
            yield differs(function, call, text)


def _sets(node: ast.Assign, value: ast.expr) -> bool:
    """Tell whether a statement sets the scale of a scaler of Apex to what a GradScaler begins with."""
    names = [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
    same = ast.unparse(node.value) == ast.unparse(value) or (
        number(value) is not None and number(node.value) == number(value)
    )
    return same and any(name.endswith(_SCALE) for name in names)


def _comes_late(
    old: Side, function: Function, node: ast.Assign, every: Sequence[Initialize]
) -> bool:
    """Tell whether a state may be loaded, or a loss scaled, between what initializes and a statement."""
    graph = old.program.graph(function)
    order = graph.order()
    begins = [p for i in every if i.function is function for p in graph.at(i.call)]
    return any(
        order.may_reach(before, point) and not order.must_pass(before, point, begins)
        for target in node.targets
        for point in graph.at(target)
        for before in _moves(old, function)
    )


def _moves(old: Side, function: Function) -> Iterator[Point]:
    """Yield where a function loads a state or scales a loss, itself or by what it calls."""
    graph = old.program.graph(function)
    for call in graph.calls:
        run = {f for callee in old.project.callees(call) for f in reachable(old.project, callee)}
        if call in _own(old, function) or any(_own(old, other) for other in run):
            yield from graph.at(call)


def _own(old: Side, function: Function) -> set[ast.Call]:
    """Return the calls of a function that load a state or run a backward pass."""
    return {call for call, _ in old.of_kind(function, Does.LOAD, Does.BACKWARD)}
