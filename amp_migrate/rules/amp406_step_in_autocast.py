"""An autocast block holds the optimizer step.

## What it does
Nothing is changed. A note names the block.

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

from amp_migrate.facts.native import Native
from amp_migrate.plan import Decision
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.remarks import note

RULE = Rule("AMP406", "an autocast block holds the optimizer step", Safety.REPORT)


def remark(native: Native) -> Iterator[Decision]:
    """Report autocast blocks that reach over the step of a GradScaler."""
    tree = native.tree
    for block in tree.nodes(ast.With):
        if not any(native.is_autocast(item) for item in block.items):
            continue
        for step in native.calls(block, "step")[:1]:
            loop = any(
                isinstance(up, ast.For | ast.While) and block in tree.ancestors(up)
                for up in tree.ancestors(step)
            )
            message = "autocast reaches over the optimizer step"
            if loop:
                message += ": after the first step the forward passes run on old weights"
            yield note(RULE, native, block, message, "end the block before the backward pass")
