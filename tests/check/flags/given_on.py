"""Flags that a function hands on to what initializes, and options of one subcommand: Apex is off where they say so, or are not there."""

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

_COMMANDS_BEFORE = """import argparse
import torch
from apex import amp


def measure(options, network, loader):
    with torch.no_grad():
        return sum(network(x).pow(2).mean().item() for x in loader)


def fit(options, network, loader):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    if options.half:
        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")
    for x in loader:
        optimizer.zero_grad()
        loss = network(x).pow(2).mean()
        if options.half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    print(measure(options, network, loader))


def test(options, network, loader):
    print(measure(options, network, loader))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    command = commands.add_parser("fit")
    command.add_argument("--half", action="store_true")
    command.set_defaults(run=fit)
    commands.add_parser("test").set_defaults(run=test)
    options = parser.parse_args()
    options.run(options, torch.nn.Linear(7, 3), [torch.randn(6, 7)])


main()
"""
_COMMANDS_AFTER = (
    _COMMANDS_BEFORE.replace("from apex import amp\n", "")
    .replace(
        """    if options.half:
        network, optimizer = amp.initialize(network, optimizer, opt_level="O1")
""",
        "    scaler = torch.cuda.amp.GradScaler(enabled=options.half)\n",
    )
    .replace(
        """        loss = network(x).pow(2).mean()
        if options.half:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    print(measure(options, network, loader))
""",
        """        with torch.cuda.amp.autocast(enabled=options.half):
            loss = network(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    with torch.cuda.amp.autocast(enabled=options.half):
        print(measure(options, network, loader))
""",
        1,
    )
)
_ASKED = "torch.no_grad(), torch.cuda.amp.autocast(enabled=options.half):"
OF_A_SUBCOMMAND = Training(
    "an option of one subcommand",
    {"run.py": _COMMANDS_BEFORE},
    {"run.py": _COMMANDS_AFTER},
    {
        "read for another one": (("torch.no_grad():", _ASKED),),
        "no casts": (("        print(measure(", "        pass\n    print(measure("),),
    },
)
