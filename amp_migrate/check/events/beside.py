"""Whether native AMP that stood beside Apex is what it was, where the way of Apex goes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.events.sides import Key, Side, changed
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.protocol.faults import Place
from amp_migrate.training.beliefs import AUTOCASTS

_DEVICE = "device"
_ORDER = (
    [_DEVICE, "init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"],
    [_DEVICE, "dtype", "enabled", "cache_enabled"],
)


def altered(old: Side, new: Side, claims: Claims) -> Iterator[tuple[Key, Difference]]:
    """Yield the native calls of a function that are no longer what they were, or gone."""
    for name in changed(old, new):
        if not any(map(claims.drops, old.functions[name])):
            continue
        had, has = _native(old, name), _native(new, name)
        for text in sorted(has.keys() - had.keys() if had else ()):
            label = Label(f"`{text}` is not what native AMP was beside Apex:")
            yield name, Difference((Step(label, None, has[text]),))
        for text in sorted(had.keys() - has.keys()):
            label = Label(f"`{text}` was native AMP beside Apex, and is gone:")
            yield name, Difference((Step(label, had[text], None),))


def _native(side: Side, name: Key) -> dict[str, Place]:
    """Return the calls that make a GradScaler or open autocast in the functions of a name, as they are written."""
    found: dict[str, Place] = {}
    for function in side.functions[name]:
        made = {call for _, call in side.program.training.objects.made_scalers}
        for call in side.program.graph(function).calls:
            called = side.project.external(function.module, call.func)
            if call in made or called in AUTOCASTS:
                found.setdefault(
                    _spelt(call, called or ""), Place(function.module.path, call.lineno)
                )
    return found


def _spelt(call: ast.Call, name: str) -> str:
    """Return a call as both interfaces of torch have it: `torch.amp` takes a device before the rest."""
    last = name.rpartition(".")[2] or ast.unparse(call.func)
    order = _ORDER[last == "autocast"]
    if name.startswith("torch.cuda."):
        order = [option for option in order if option != _DEVICE]
        order = ["enabled", "dtype", *order[2:]] if last == "autocast" else order
    given = dict(zip(order, call.args, strict=False))
    given |= {k.arg or "**": k.value for k in call.keywords}
    given = {option: value for option, value in given.items() if not option.startswith(_DEVICE)}
    options = ", ".join(f"{option}={ast.unparse(given[option])}" for option in sorted(given))
    return f"{last}({options})"
