"""Clips of what one optimizer of a list has: faults that clip the whole network instead, and a list of it alone that may."""

from __future__ import annotations

from check.trainings.planted import Training, files, skipped_apart

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def train(model, loader, optimizer, others):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        with amp.scale_loss(loss, others) as scaled_loss:
            scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
        for each in others:
            each.step()
        for each in others:
            each.zero_grad()


def main():
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    {made}
    every = {listed}
    model, _ = amp.initialize(model, every)
    train(model, [(torch.randn(6, 4), torch.randint(3, (6,)))], optimizer, every)
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def train(model, loader, optimizer, others, scaler):
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_({parameters}, 1.0)
        for each in others:
            scaler.step(each)
        scaler.update()
        for each in others:
            each.zero_grad()


def main():
    model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
    {made}
    every = {listed}
    scaler = torch.cuda.amp.GradScaler()
    train(model, [(torch.randn(6, 4), torch.randint(3, (6,)))], optimizer, every, scaler)
"""
_OWN = "[p for group in optimizer.param_groups for p in group['params']]"
_WHOLE = "model.parameters()"
_EACH = (
    "        scaler.unscale_(optimizer)\n",
    "        for each in others:\n            scaler.unscale_(each)\n",
)
_FAULT = "it clips the whole network"
_MADE = (
    "optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)",
    "other = torch.optim.Adam(model[1].parameters(), lr=0.01)",
)
_LISTS = {
    "a list of two": ("\n    ".join(_MADE), "[optimizer, other]"),
    "a list of one and what a loop makes": (
        _MADE[0],
        "[optimizer, *(torch.optim.Adam([p], lr=0.01) for p in model[1].parameters())]",
    ),
    "what a list is made of": ("\n    ".join(_MADE), "list((optimizer, other))"),
}

ONE_OF_SEVERAL = (
    *(
        skipped_apart(
            Training(
                f"one optimizer is clipped, of {name}",
                files(_BEFORE.format(made=made, listed=listed)),
                files(_AFTER.format(made=made, listed=listed, parameters=_OWN)),
                {_FAULT: (_EACH, (_OWN, _WHOLE))},
            )
        )
        for name, (made, listed) in _LISTS.items()
    ),
    skipped_apart(
        Training(
            "one optimizer is clipped, of a list of it alone",
            files(_BEFORE.format(made="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", listed="[optimizer]")),
            files(
                _AFTER.format(
                    made="optimizer = torch.optim.SGD(model.parameters(), lr=0.1)", listed="[optimizer]", parameters=_WHOLE
                )
            ),
            {},
        )
    ),
)  # fmt: skip
