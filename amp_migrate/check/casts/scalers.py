"""Whether GradScalers are on exactly where Apex was."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.casts.assumed import Initialize
from amp_migrate.check.casts.casting import Casting, Casts
from amp_migrate.check.events.sides import Key, Side, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.project import Function
from amp_migrate.protocol.faults import Place
from amp_migrate.training.contexts import is_off

ENABLED, DISABLED = "is on, where Apex was off:", "is off, where Apex was on:"


class Scalers:
    """Knows the GradScalers of the old text, which `native` reads."""

    def __init__(self, old: Side, native: Casting) -> None:
        self._old = old
        self._native = native

    def differing(
        self,
        native: Casting,
        begun: dict[Function, frozenset[Casts]],
        wrong: bool,
        what: str,
    ) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScalers that are on or off where Apex was not."""
        for function, call in native.enabled.makers:
            if is_off(call) and not all(is_off(c) for _, c in native.enabled.makers):
                continue
            if function in begun and native.enabled.reached(function, call):
                if (
                    key(function) in self._old.functions
                    and native.enabled.on(function, call) is wrong
                ):
                    if not self._made_before(function, call):
                        yield _differs(what, function, call)

    def off(self, item: Initialize, native: Casting) -> Iterator[tuple[Key, Difference]]:
        """Yield the GradScaler that the function of an initialize makes off, where it makes none that may be on."""
        made = [
            (function, call)
            for function, call in native.enabled.makers
            if key(function) == key(item.function) and native.enabled.reached(function, call)
        ]
        if all(native.enabled.on(function, call) is False for function, call in made):
            for function, call in made[:1]:
                if not self._made_before(function, call):
                    yield _differs(DISABLED, function, call)

    def _made_before(self, function: Function, call: ast.Call) -> bool:
        text = ast.unparse(call)
        return any(ast.unparse(c) == text for _, c in self._native.enabled.makers)


def _differs(what: str, function: Function, call: ast.Call) -> tuple[Key, Difference]:
    place = Place(function.module.path, call.lineno)
    return key(function), Difference((Step(Label(f"`GradScaler` {what}"), None, place),))
