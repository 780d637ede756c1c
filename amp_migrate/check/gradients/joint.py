"""Whether a run says of several optimizers which Apex skipped together that GradScaler decides for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import STEPS, Claims
from amp_migrate.check.events.sides import Key, Side, changed
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.facts.paths import argument, tail
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import scales_loss
from amp_migrate.training.origins.meant import are_several

_APART = "steps without what Apex skipped together with it, and no rule says so:"


def apart(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the optimizers that one scale_loss is given, whose steps a GradScaler takes or skips one by one."""
    for name, _ in changed(old, new):
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


def _blocks(side: Side, function: Function) -> Iterator[ast.Call]:
    """Yield the calls of a function that enter a scaled loss of Apex."""
    return (
        c
        for c in function.calls
        if tail(c) == "scale_loss" and scales_loss(side.project, function.module, c)
    )
