"""A GradScaler is used on a path that does not make it.

## What it does
Nothing is changed. A note names the first use of a GradScaler under fewer tests than those that it is made under, and where
it is made.

## Why
Where the test fails, the name is not bound and Python raises an UnboundLocalError or a NameError. A GradScaler that is made
with `enabled=` passes everything through when it is off.

## Example
    if args.fp16:
        scaler = torch.cuda.amp.GradScaler()
    for images, labels in loader:
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()

## Use instead
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for images, labels in loader:
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()

## Safety
Report only.
"""

from __future__ import annotations

from collections.abc import Iterator

from amp_migrate.plan.model import Decision
from amp_migrate.protocol.certain.reading import Reading
from amp_migrate.protocol.faults import Breach
from amp_migrate.rules.base import Rule, Safety
from amp_migrate.rules.native.remarks import code, note, of, of_turn

RULE = Rule("AMP408", "a GradScaler is used on a path that does not make it", Safety.REPORT)


def remark(reading: Reading) -> Iterator[Decision]:
    """Report GradScalers that are made under a test and used without it."""
    for item in of(reading, Breach.UNBOUND):
        at, made = code(item), of_turn(item.turns[0])
        message = f"{at.text} is used here on a path that does not make it; it is made under a test, at {made.place}"
        advice = f"make {at.text} on every path, with GradScaler(enabled=...) in place of the test"
        yield note(RULE, at, message, advice, [made])
