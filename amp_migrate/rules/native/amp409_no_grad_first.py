"""A forward without gradients shares an autocast block with a training forward.

## What it does
Nothing is changed. A note names a forward pass of a network that some path runs in an autocast block in which the same
network ran under `torch.no_grad()` before, and that first forward.

## Why
An autocast block casts a weight once and keeps the copy until its end. A copy that was made without gradients has none:
on torch before 2.13 the weights get no gradients from the second forward, and the network does not train.

## Example
    with torch.cuda.amp.autocast():
        with torch.no_grad():
            target = model(images)
        loss = criterion(model(images), target)

## Use instead
    with torch.cuda.amp.autocast(), torch.no_grad():
        target = model(images)
    with torch.cuda.amp.autocast():
        loss = criterion(model(images), target)

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.casts.machine import Inside
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import causes, code, note, of_turn

RULE = Rule("AMP409", "a forward without gradients shares its autocast block", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report training forwards of networks whose weights the block has cast without gradients."""
    for item, turn in causes(reading, _caches, Breach.CACHED):
        first = of_turn(turn)
        message = (
            f"{first} ran in the same autocast block without gradients: "
            "on torch before 2.13 the weights get no gradients from this forward"
        )
        advice = f"give {first.text} an autocast block of its own"
        yield note(RULE, code(item), message, advice, [first])


def _caches(turn: Turn) -> bool:
    before, after = turn.before, turn.after
    return isinstance(before, Inside) and isinstance(after, Inside) and after.cached > before.cached
