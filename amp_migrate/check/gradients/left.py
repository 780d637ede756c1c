"""Whether a run says of gradients that Apex left multiplied by the loss scale that they are divided by it now."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.check.apex.assumed import Initialize
from amp_migrate.check.events.claims import LEFT, Claims
from amp_migrate.check.events.sides import Key, Side, changed, differs, key
from amp_migrate.check.events.traces import Difference, Label, Step
from amp_migrate.protocol.delayed import delayed
from amp_migrate.protocol.faults import Place
from amp_migrate.protocol.left_scaled import left_scaled
from amp_migrate.training.contexts import scaling_calls

_UNTOLD = "gives gradients to an optimizer that its scale_loss does not name, and no rule says that they are unscaled now:"

_DELAYED = "steps on gradients that delay_unscale left scaled, and no rule says that they are unscaled now:"


def divided(
    old: Side, new: Side, every: Sequence[Initialize], claims: Claims
) -> Iterator[tuple[Key, Difference]]:
    """Yield the backward passes whose gradients Apex left scaled and used, where GradScaler divides them."""
    if all(item.on is None for item in every):
        return
    scaling = scaling_calls(new.project)
    rewritten = {
        name
        for name in changed(old, new)
        if not any(c in scaling for f in new.functions[name] for c in f.calls)
    }
    for left in left_scaled(old.program) if rewritten else ():
        place = Place(left.function.module.path, left.backward.lineno)
        name = key(left.function)
        if name in rewritten and not claims.drops(left.function) and not claims.say(LEFT, place):
            yield (
                name,
                Difference(
                    (
                        Step(
                            Label(f"`{ast.unparse(left.backward)}` {_UNTOLD}"),
                            place,
                            left.used.place,
                        ),
                    )
                ),
            )
    for step in delayed(old.program) if rewritten else ():
        name = key(step.function)
        place = Place(step.function.module.path, step.step.lineno)
        if name in rewritten and not claims.drops(step.function) and not claims.say(LEFT, place):
            yield differs(step.function, step.step, f"`{ast.unparse(step.step)}` {_DELAYED}")
