"""Chains of tests that choose between Apex, native AMP and neither: the first and the last way are one now."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from torch import nn
from apex import amp


def train(way, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    native = torch.cuda.amp.GradScaler() if way == "native" else None
    if FIRST:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=way == "native"):
            loss = nn.functional.mse_loss(model(x), y)
        if FIRST:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        elif way == "native":
            native.scale(loss).backward()
        else:
            loss.backward()
        if way == "native":
            native.step(optimizer)
            native.update()
        else:
            optimizer.step()
"""
_AFTER = """import torch
from torch import nn


def train(way, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    native = torch.cuda.amp.GradScaler() if way == "native" else None
    scaler = torch.cuda.amp.GradScaler(enabled=FIRST)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=way == "native" or FIRST):
            loss = nn.functional.mse_loss(model(x), y)
        if way == "native":
            native.scale(loss).backward()
        else:
            scaler.scale(loss).backward()
        if way == "native":
            native.step(optimizer)
            native.update()
        else:
            scaler.step(optimizer)
            scaler.update()
"""
_CLAIMS = (("AMP110", "train.py", 15),)


def _chain(name: str, first: str, **faults: tuple[str, str]) -> Training:
    table = {what.replace("_", " "): (edit,) for what, edit in faults.items()}
    before, after = ({"train.py": text.replace("FIRST", first)} for text in (_BEFORE, _AFTER))
    return Training(name, before, after, table, _CLAIMS)


CHAINS = (
    _chain(
        "ways that exclude one another",
        'way == "apex"',
        the_native_way_goes_as_well=(
            'if way == "native":\n            native.scale(loss).backward()\n        else:\n',
            "if True:\n",
        ),
        the_native_way_takes_all=(
            'if way == "native":\n            native.scale',
            "if True:\n            native.scale",
        ),
        the_last_way_is_not_scaled=("            scaler.scale(loss)", "            loss"),
    ),
)
CHAINS_THAT_OVERLAP = (_chain("ways that do not exclude one another", 'way != "none"'),)
