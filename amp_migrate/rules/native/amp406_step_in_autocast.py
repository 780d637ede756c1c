"""An autocast block holds the optimizer step.

## What it does
Nothing is changed. A note names the block, and the step that some path takes inside of it, in whatever function.

## Why
Weights are cast once in an autocast block and kept until its end: a forward pass that follows a step in the same
block runs on the weights of before, and the training stands still.

## Example
    with torch.cuda.amp.autocast():
        for images, labels in loader:
            loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

## Use instead
    for images, labels in loader:
        with torch.cuda.amp.autocast():
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

## Safety
Report only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.autocast_block import block
from amp_migrate.rules.native.remarks import code, note, of

RULE = Rule("AMP406", "an autocast block holds the optimizer step", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report autocast blocks in which an optimizer steps."""
    seen: set[ast.AST] = set()
    for item in of(reading, Breach.CAST_STEP):
        held = block(item)
        if held is None or held.node in seen:
            continue
        seen.add(held.node)
        step = code(item)
        message = f"autocast reaches over {step}: forward passes that follow it in the block run on old weights"
        yield note(RULE, held, message, "end the block before the backward pass", [step])
