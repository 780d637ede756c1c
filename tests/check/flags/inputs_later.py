"""Gradients of inputs behind a plain backward, which runs once a flag is off: the scale must not come into them."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp


def saliency(model, x, y, optimizer, half):
    seen = x.clone().requires_grad_()
    loss = F.cross_entropy(model(seen), y)
    if half:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
            seen.grad.mul_(loss.item() / scaled_loss.item())
    else:
        loss.backward()
    return seen.grad


class Settings:
    half = True


def train(model, optimizer, loader, settings):
    {kept}
    if {flag}:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loud = x + saliency(model, x, y, optimizer, {flag}).sign()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(loud), y)
        if {flag}:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
    {off}
    print(saliency(model, x, y, optimizer, {flag}))


network = torch.nn.Linear(7, 3)
sgd = torch.optim.SGD(network.parameters(), lr=0.1)
train(network, sgd, [(torch.randn(6, 7), torch.randint(0, 3, (6,)))], Settings())
"""
_AFTER = """import torch
import torch.nn.functional as F


def saliency(model, x, y, optimizer, half, scaler):
    seen = x.clone().requires_grad_()
    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
        loss = F.cross_entropy(model(seen), y)
    if half:
        scaled_loss = scaler.scale(loss)
        scaled_loss.backward()
        seen.grad.mul_(loss.item() / scaled_loss.item())
    else:
        loss.backward()
    return seen.grad


class Settings:
    half = True


def train(model, optimizer, loader, settings):
    {kept}
    scaler = torch.cuda.amp.GradScaler(enabled={flag})
    for x, y in loader:
        loud = x + saliency(model, x, y, optimizer, {flag}, scaler).sign()
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(model(loud), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    {off}
    print(saliency(model, x, y, optimizer, {flag}, scaler))


network = torch.nn.Linear(7, 3)
sgd = torch.optim.SGD(network.parameters(), lr=0.1)
train(network, sgd, [(torch.randn(6, 7), torch.randint(0, 3, (6,)))], Settings())
"""
_WAYS = {
    "a variable": ("half = settings.half", "half = False", "half"),
    "an attribute": ("held = settings", "settings.half = False", "settings.half"),
    "an item": ('held = {"half": True}', 'held["half"] = False', 'held["half"]'),
}
_SCALED = (
    ("    else:\n        loss.backward()", "    else:\n        scaler.scale(loss).backward()"),
)

INPUTS_LATER = [
    Training(
        f"the gradient of an input behind {way} that is set",
        {"train.py": _BEFORE.format(kept=kept, off=off, flag=flag)},
        {"train.py": _AFTER.format(kept=kept, off=off, flag=flag)},
        {"its plain backward is scaled": _SCALED},
        (("AMP116", "train.py", 14),),
    )
    for way, (kept, off, flag) in _WAYS.items()
]
