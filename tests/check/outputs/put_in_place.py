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
    "added to zeros": "w.grad = torch.zeros_like(w) + value",
    "copied by a name": "held = w.grad\n            held.copy_(value)",
    "added to data by a name": "held = w.grad.data\n            held += value",
    "added out of a list": "for held in [w.grad]:\n                held.view(-1).add_(value.view(-1))",
}
_REPLACED = (
    *("assigned", "assigned as data", "copied", "copied into data"),
    *("added to zeros", "copied by a name"),
)


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


_TWO_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp


def main(loader, first, second):
    early = torch.optim.SGD(first.parameters(), lr=0.1)
    late = torch.optim.SGD(second.parameters(), lr=0.1)
    [first, second], [early, late] = amp.initialize([first, second], [early, late], opt_level="O1")
    for x, y in loader:
        loss = F.mse_loss(second(first(x)), y)
        with amp.scale_loss(loss, [early, late]) as scaled:
            scaled.backward()
        for w in (first if len(x) > 2 else second).parameters():
            w.grad = w.grad / w.grad.norm()
        early.step()
        late.step()
        early.zero_grad()
        late.zero_grad()


main([], torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
"""
_TWO_AFTER = """\
import torch
import torch.nn.functional as F


def main(loader, first, second):
    early = torch.optim.SGD(first.parameters(), lr=0.1)
    late = torch.optim.SGD(second.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(second(first(x)), y)
        scaler.scale(loss).backward()
        scaler.unscale_(early)
        scaler.unscale_(late)
        for w in (first if len(x) > 2 else second).parameters():
            w.grad = w.grad / w.grad.norm()
        scaler.step(early)
        scaler.step(late)
        scaler.update()
        early.zero_grad()
        late.zero_grad()


main([], torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
"""
_LATE = "        scaler.unscale_(late)\n"
_ONE_OF_TWO = Training(
    "gradients of one of two optimizers",
    {"train.py": _TWO_BEFORE},
    {"train.py": _TWO_AFTER},
    {
        "the scale is updated before they are put in place": (
            (_LATE, f"{_LATE}        scaler.update()\n"),
        )
    },
    claims=(("AMP105", "train.py", 12, 12, True),),
)
PUT_IN_PLACE = (_ONE_OF_TWO, *(_training(name, put) for name, put in _WAYS.items()))
