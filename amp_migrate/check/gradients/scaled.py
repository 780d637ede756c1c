"""Whether what Apex scaled is scaled: the losses of its blocks, and the steps of the optimizers that these name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.labels import Does, text_of
from amp_migrate.check.events.sides import Key, Side, changed, differs, staying
from amp_migrate.check.events.traces import Difference, Label
from amp_migrate.facts.paths import argument, tail
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Function
from amp_migrate.training.contexts import scaling_calls

PLAIN, PAST = (
    "is not scaled any more, which Apex did:",
    "steps past the GradScaler, where Apex scaled its loss:",
)
_ENDS = frozenset({"unscale_", "step", "update"})


def unscaled(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the backward passes and steps of Apex that no way of the new text makes through a GradScaler."""
    if not new.program.training.objects.scalers:
        return
    for before, after, introduced in staying(old, new, claims):
        losses = {label for f in before for _, label, by_apex in _backwards(old, f) if by_apex}
        optimizers = {text for f in before for text in _named(old, f)}
        now = [(f, *found) for f in after for found in _backwards(new, f, introduced)]
        steps = [(f, *found) for f in after for found in _steps(new, f, introduced)]
        for label in sorted(losses - {label for _, _, label, scaled in now if scaled}):
            yield from _first(f"`{label}` {PLAIN}", [(f, c) for f, c, w, _ in now if w == label])
        for text in sorted(optimizers - {text for _, _, text, scaled in steps if scaled}):
            yield from _first(f"`{text}` {PAST}", [(f, c) for f, c, w, _ in steps if w == text])


def backwards(
    side: Side, function: Function, introduced: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.Call, Label, bool]]:
    """Yield the backward passes of a function, each with its label and whether it is scaled."""
    for call, label in side.of_kind(function, Does.BACKWARD, introduced=introduced):
        yield call, label, side.labels.is_scaled(function, call)


def scaled_now(old: Side, new: Side) -> Iterator[tuple[Key, Function, ast.Call, Label]]:
    """Yield the plain backward passes of functions that change, where all of their label are scaled in the new text."""
    for name, introduced in changed(old, new).items():
        now = [found for f in new.functions[name] for found in backwards(new, f, introduced)]
        scaled = {label for _, label, by_scaler in now if by_scaler}
        scaled -= {label for _, label, by_scaler in now if not by_scaler}
        for function in old.functions[name]:
            for call, label, by_apex in backwards(old, function):
                if not by_apex and label in scaled:
                    yield name, function, call, label


def _first(what: str, found: list[tuple[Function, ast.Call]]) -> Iterator[tuple[Key, Difference]]:
    """Yield a difference at the first of some calls, if there is one."""
    for function, call in found[:1]:
        yield differs(function, call, what)


def _backwards(
    side: Side, function: Function, introduced: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.Call, Label, bool]]:
    """Yield the backward passes of a function, each with its label and whether it may be scaled."""
    for call, label, scaled in backwards(side, function, introduced):
        yield call, label, scaled or is_late(side, function, call)


def is_late(side: Side, function: Function, node: ast.AST) -> bool:
    """Tell whether a node may run between `unscale_` and the step, when gradients are true already."""
    scaler = side.program.training.objects.scaler

    def ends(point: Point) -> bool:
        called = point.node.func if isinstance(point.node, ast.Call) else None
        return (
            isinstance(called, ast.Attribute)
            and called.attr in _ENDS
            and scaler(function.module, called.value) is not None
        )

    before = side.program.graph(function).nearest_before(node, ends)
    return any(isinstance(p.node, ast.Call) and tail(p.node) == "unscale_" for p in before)


def _steps(
    side: Side, function: Function, introduced: frozenset[str]
) -> Iterator[tuple[ast.Call, str, bool]]:
    """Yield the steps of a function, each with its optimizer and whether a GradScaler makes it."""
    for call, label in side.of_kind(function, Does.STEP, introduced=introduced):
        given = argument(call, "optimizer", 0)
        yield call, label.of, given is not None and text_of(given) == label.of


def _named(side: Side, function: Function) -> Iterator[str]:
    """Yield the optimizers that the blocks of Apex in a function name."""
    for call in side.program.graph(function).calls:
        if call in scaling_calls(side.project) and len(call.args) > 1:
            yield text_of(call.args[1])
