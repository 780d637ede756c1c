"""A backward pass runs inside an autocast block.

## What it does
Nothing is changed. A note names the backward pass of a scaled loss that some path runs inside an autocast block, and the
block. A block that holds the step as well gets AMP406 alone.

## Why
torch advises against it: backward operations run in the dtype of their forward anyway, and what else runs in the block,
as a gradient penalty or a hook, is cast although it was not meant to be.

## Example
    with torch.cuda.amp.autocast():
        loss = criterion(model(images), labels)
        scaler.scale(loss).backward()

## Use instead
    with torch.cuda.amp.autocast():
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()

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

RULE = Rule("AMP411", "a backward pass runs inside an autocast block", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report the first backward pass in each autocast block that holds no step."""
    stepped = (block(item) for item in of(reading, Breach.CAST_STEP))
    seen: set[ast.AST] = {held.node for held in stepped if held is not None}
    for item in of(reading, Breach.CAST_BACKWARD):
        held = block(item)
        if held is None or held.node in seen:
            continue
        seen.add(held.node)
        message = f"this backward pass runs inside the autocast block at {held.place}"
        yield note(RULE, code(item), message, "end the block before it", [held])
