"""Tests of a network behind its training that ask the settings what a variable of the training was given, and faults."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
from apex import amp


def train(cfg, loader):
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mixed = cfg.dtype == "float16"
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1" if mixed else "O0")
    for x in loader:
        loss = model(x).float().square().mean()
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    return model


def test(cfg, model, loader):
    with torch.no_grad():
        return [model(x).float() for x in loader]


def main(cfg, loader):
    model = train(cfg, loader)
    print(test(cfg, model, loader))


if __name__ == "__main__":
    main(parse(), load())
"""
_AFTER = """
# file: train.py
import torch


def train(cfg, loader):
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mixed = cfg.dtype == "float16"
    scaler = torch.cuda.amp.GradScaler(enabled=mixed)
    for x in loader:
        with torch.cuda.amp.autocast(enabled=mixed):
            loss = model(x).float().square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def test(cfg, model, loader):
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=cfg.dtype == "float16"):
        return [model(x).float() for x in loader]


def main(cfg, loader):
    model = train(cfg, loader)
    print(test(cfg, model, loader))


if __name__ == "__main__":
    main(parse(), load())
"""
_ASKED = 'autocast(enabled=cfg.dtype == "float16")'

TOLD_BY_SETTINGS = (
    Training(
        "a test asks the settings what a variable of the training was given",
        files(_BEFORE),
        files(_AFTER),
        {
            "another value": ((_ASKED, 'autocast(enabled=cfg.dtype == "float32")'),),
            "the other way round": ((_ASKED, 'autocast(enabled=cfg.dtype != "float16")'),),
            "another option": ((_ASKED, 'autocast(enabled=cfg.kind == "float16")'),),
            "whatever they say": ((_ASKED, "autocast()"),),
            "never": ((f"torch.no_grad(), torch.cuda.amp.{_ASKED}", "torch.no_grad()"),),
        },
    ),
)
