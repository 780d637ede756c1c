"""Whether the state that is saved and loaded is that of the GradScaler that trains."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.labels import Does
from amp_migrate.check.events.sides import Key, Side, changed, differs
from amp_migrate.check.events.traces import Difference

_APART = "is of a GradScaler that scales nothing, beside one that does:"
_USES = ("scale", "step", "unscale_", "update")


def saved_apart(old: Side, new: Side) -> Iterator[tuple[Key, Difference]]:
    """Yield what saves or loads the state of a GradScaler that is made for that alone."""
    objects = new.program.training.objects
    used: set[int] = set()
    for method in _USES:
        for module, call in objects.method_calls.get(method, ()):
            assert isinstance(call.func, ast.Attribute)
            used |= objects.groups(module, call.func.value)
    made = {
        group for module, call in objects.made_scalers for group in objects.groups(module, call)
    }
    if not used & made:
        return
    for name, introduced in changed(old, new):
        for function in new.functions[name]:
            events = new.of_kind(function, Does.SAVE, Does.LOAD, introduced=introduced)
            for call, _ in events:
                if not isinstance(call.func, ast.Attribute):
                    continue
                held = objects.groups(function.module, call.func.value)
                if held & made and not held & used:
                    yield differs(function, call, f"`{ast.unparse(call)}` {_APART}")
