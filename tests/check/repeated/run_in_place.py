"""Calls that may run one of several functions, of which one trains: each has to take what the call gives."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
from apex import amp


def fit(model, optimizer, batches):
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def show(model, optimizer, batches):
    print(len(batches))


{held}def main(model, optimizer, batches, which):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    {run}(model, optimizer, batches)
"""
_AFTER = """
# file: train.py
import torch


def fit(model, optimizer, batches, scaler):
    for x, y in batches:
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def show(model, optimizer, batches, scaler):
    print(len(batches))


{held}def main(model, optimizer, batches, which):
    scaler = torch.cuda.amp.GradScaler()
    {run}(model, optimizer, batches, scaler)
"""
_WAYS = {
    "a dictionary": {"held": 'LOOPS = {"fit": fit, "show": show}\n\n\n', "run": "LOOPS[which]"},
    "a list that a loop goes through": {
        "run": "for loop in [fit, show]:\n        loop",
    },
    "a choice": {"run": "loop = fit if which else show\n    loop"},
}


def _texts(ways: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    given = {"held": "", **ways}
    return files(_BEFORE.format(**given)), files(_AFTER.format(**given))


RUN_IN_PLACE = tuple(
    Training(
        f"functions in {name}",
        *_texts(ways),
        {
            "one takes no GradScaler": (
                (
                    "def show(model, optimizer, batches, scaler)",
                    "def show(model, optimizer, batches)",
                ),
            ),
            "one takes two": (
                (
                    "def show(model, optimizer, batches, scaler)",
                    "def show(model, optimizer, batches, scaler, scalers)",
                ),
            ),
        },
    )
    for name, ways in _WAYS.items()
)
