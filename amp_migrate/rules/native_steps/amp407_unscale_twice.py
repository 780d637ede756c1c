"""`scaler.unscale_` runs twice for one step.

## What it does
Nothing is changed. A note names an `unscale_` that some path reaches a second time for one optimizer without
`scaler.update()` in between, and the first.

## Why
torch raises a RuntimeError at the second `unscale_`: gradients would be divided by the scale twice. While gradients
accumulate they stay scaled; they are unscaled once, right before the step. A step that is skipped still needs `update()`.

## Example
    for i, (images, labels) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if (i + 1) % 4 == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

## Use instead
    for i, (images, labels) in enumerate(loader):
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        if (i + 1) % 4 == 0:
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading, Shown
from amp_migrate.protocol.faults import Breach
from amp_migrate.protocol.gradients import Grad, Stage, State
from amp_migrate.protocol.run.ways import Turn
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import causes, code, note, of_turn, reaches, since

RULE = Rule("AMP407", "scaler.unscale_() runs twice for one step", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report, once for each unscale_, what unscales the same gradients again."""
    for item, turn in causes(reading, reaches(Stage.UNSCALED), Breach.UNSCALED_TWICE):
        at, first = code(item), of_turn(turn)
        scaler, optimizer = reading.scaler(item), reading.optimizer(item)
        if first.node is at.node:
            again, named = "it comes around again", []
        else:
            again, named = f"{first} came before it", [first]
        message = f"{again} without {scaler}.update() in between, at which torch raises an error"
        if _drops(item, turn):
            advice = f"call {scaler}.update() also where the step is skipped"
        else:
            advice = (
                f"call {scaler}.unscale_({optimizer}) once, right before {scaler}.step({optimizer})"
            )
        yield note(RULE, at, message, advice, named)


def _drops(item: Shown, first: Turn) -> bool:
    """Tell whether gradients are thrown away in between: a step that is skipped."""
    later = since(item, first)
    return any(isinstance(t.after, State) and t.after.grad is Grad.EMPTY for t in later)
