"""Flags that a function hands on to what initializes: Apex is off where the one that gives them says so."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from apex import amp


def prepare(network, optimizer, mixed):
    if mixed:
        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")
    return network, optimizer


def train(network, loader, half):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with torch.no_grad():
        first = network(loader[0]).mean()
    network, optimizer = prepare(network, optimizer, half)
    for x in loader:
        optimizer.zero_grad()
        loss = network(x).pow(2).mean()
        if half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    return first


print(train(torch.nn.Linear(7, 3), [torch.randn(6, 7)], True))
"""
_AFTER = """import torch


def prepare(network, optimizer, mixed):
    scaler = torch.cuda.amp.GradScaler(enabled=mixed)
    return network, optimizer, scaler


def train(network, loader, half):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with torch.no_grad():
        first = network(loader[0]).mean()
    network, optimizer, scaler = prepare(network, optimizer, half)
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=half):
            loss = network(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return first


print(train(torch.nn.Linear(7, 3), [torch.randn(6, 7)], True))
"""
_CASTS = "torch.cuda.amp.autocast(enabled=half)"
_FAULTS = {
    "casts without the flag": ((_CASTS, "torch.cuda.amp.autocast()"),),
    "casts where the flag is off": ((_CASTS, "torch.cuda.amp.autocast(enabled=not half)"),),
    "a forward above": (("torch.no_grad():", f"torch.no_grad(), {_CASTS}:"),),
    "no casts": ((_CASTS, "torch.cuda.amp.autocast(enabled=False)"),),
}

GIVEN_ON = Training("a flag is given on", {"train.py": _BEFORE}, {"train.py": _AFTER}, _FAULTS)
