"""Gradients that a program works out apart: they are unscaled, and a step must know so and ask for their overflow."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp


def main(loader, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        weights = list(model.parameters())
        flat = torch.cat([w.grad.flatten() for w in weights])
        flat = flat / flat.norm()
        for w in weights:
            value = flat[: w.numel()].view_as(w)
            {put}
            flat = flat[w.numel() :]
        optimizer.step()
        optimizer.zero_grad()


main([], torch.nn.Linear(4, 2))
"""
_AFTER = """\
import torch
import torch.nn.functional as F


def main(loader, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        weights = list(model.parameters())
        scaler.unscale_(optimizer)
        flat = torch.cat([w.grad.flatten() for w in weights])
        flat = flat / flat.norm()
        for w in weights:
            value = flat[: w.numel()].view_as(w)
            {put}
            flat = flat[w.numel() :]
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


main([], torch.nn.Linear(4, 2))
"""
_READ = "        flat = flat / flat.norm()\n"
_WAYS = {
    "assigned": "w.grad = value.clone()",
    "assigned as data": "w.grad.data = value.clone()",
    "copied": "w.grad.copy_(value)",
    "copied into data": "w.grad.data.copy_(value)",
    "added": "w.grad.add_(value, alpha=0.5)",
    "added in place": "w.grad += value",
    "mixed": "w.grad = 0.5 * w.grad + 0.5 * value",
}
_REPLACED = ("assigned", "assigned as data", "copied", "copied into data")


def _training(name: str, put: str) -> Training:
    faults = {
        "the scale is updated before they are put in place": (
            (_READ, f"{_READ}        scaler.update()\n"),
        )
    }
    if name in _REPLACED:
        faults["they are scaled no more, and step divides them"] = (
            ("        scaler.unscale_(optimizer)\n", ""),
            (_READ, f"{_READ}        optimizer.zero_grad()\n"),
        )
    return Training(
        f"gradients {name}",
        {"train.py": _BEFORE.format(put=put)},
        {"train.py": _AFTER.format(put=put)},
        faults,
    )


PUT_IN_PLACE = tuple(_training(name, put) for name, put in _WAYS.items())
