"""Whether one GradScaler scales, unscales and steps what belongs to an optimizer, where there are several."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.sides import Key, Side, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.check.gradients.waiting import fed
from amp_migrate.facts.paths import tail
from amp_migrate.project import Function
from amp_migrate.training.bindings import values_of
from amp_migrate.training.events import Event, Kind

_APART = "goes through another GradScaler than the step of its optimizer:"


def mixed_up(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield the losses and the calls of `unscale_` whose GradScaler never steps the optimizer that they are for."""
    if len(new.program.training.objects.scalers) < 2:
        return
    steps: dict[int, set[int]] = {}
    for _, event in _through(new, Kind.STEP):
        for number in event.optimizers or ():
            steps.setdefault(number, set()).add(event.scaler or 0)
    for function, event in _through(new, Kind.UNSCALE):
        if event.certain and _is_apart(event.optimizers or frozenset(), event.scaler, steps):
            yield _differs(function, event.node)
    for call, optimizers in fed(old, new).items():
        function = new.project.holder(call)
        numbers = {_number(new, function, scale) for scale in _scales(function, call)}
        if len(numbers) == 1 and _is_apart(optimizers, numbers.pop(), steps):
            yield _differs(function, call)


def _through(side: Side, kind: Kind) -> Iterator[tuple[Function, Event]]:
    """Yield the events of a kind that go through a GradScaler."""
    for function, held in side.program.training.by_function.items():
        for events in held.values():
            yield from ((function, e) for e in events if e.kind is kind and e.scaler is not None)


def _is_apart(optimizers: frozenset[int], scaler: int | None, steps: dict[int, set[int]]) -> bool:
    """Tell whether other GradScalers alone step whatever of some optimizers it may be."""
    stepped = [steps[number] for number in optimizers if number in steps]
    return scaler is not None and bool(stepped) and all(scaler not in by for by in stepped)


def _scales(function: Function, backward: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of ``scaler.scale`` that give the loss of a backward."""
    for part in ast.walk(backward):
        if isinstance(part, ast.Call) and tail(part) == "scale":
            yield part
        elif isinstance(part, ast.Name):
            values = values_of(function.module, part)
            yield from (v for v in values if isinstance(v, ast.Call) and tail(v) == "scale")


def _number(side: Side, function: Function, scale: ast.Call) -> int | None:
    """Return the number of the GradScaler that scales a loss; None where it may be one of several."""
    assert isinstance(scale.func, ast.Attribute)
    objects = side.program.training.objects
    groups = objects.groups(function.module, scale.func.value)
    numbers = [scaler.number for scaler in objects.scalers if scaler.groups & groups]
    return numbers[0] if len(numbers) == 1 else None


def _differs(function: Function, node: ast.AST) -> tuple[Key, Difference]:
    assert isinstance(node, ast.Call)
    return differs(function, node, f"`{ast.unparse(node)}` {_APART}")
