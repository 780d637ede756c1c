"""Losses that leave for code out of sight together with their optimizer, which scales them by Apex or not at all."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.labels import called
from amp_migrate.check.events.sides import Key, Side, differs
from amp_migrate.check.events.traces import Difference
from amp_migrate.facts.paths import all_given, tail
from amp_migrate.protocol.faults import Trouble
from amp_migrate.training.events import Event, Kind


def handed_over(new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the calls of a new text that hand a loss and its optimizer to code that cannot be read.

    Where the way of Apex goes beside another one, what is left scales by itself.
    """
    training = new.program.training
    for function, held in training.by_function.items():
        if claims.drops(function):
            continue
        for node, events in held.items():
            handed = [e for e in events if e.kind is Kind.HANDED]
            if isinstance(node, ast.Call) and handed and not any(e.assumed for e in handed):
                if not new.program.calls.of(node) and _has_loss(held, node):
                    what = f"`{called(node.func)}` is given a loss and its optimizer, but no GradScaler:"
                    yield differs(function, node, what, trouble=Trouble.OUT_OF_SIGHT)


def _has_loss(held: Mapping[ast.AST, tuple[Event, ...]], call: ast.Call) -> bool:
    """Tell whether a call is given a loss on which another path of the function runs the backward itself.

    A call of Apex that stays raises, as it did.
    """
    if tail(call) == "scale_loss":
        return False
    losses = {e.loss for events in held.values() for e in events if e.loss is not None}
    given = all_given(call)
    return any(isinstance(item, ast.Name) and item.id in losses for item in given)
