"""Evaluations under `amp.disable_casts()`, by whatever way a block has it: what those run is not cast."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import contextlib
import torch
import torch.nn.functional as F
from apex import amp
TOP

def score(model, batches):
    return [model(x) for x, _ in batches]

def main(model, optimizer, batches, half):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    BELOW
        print(score(model, batches))
"""
_AFTER = """import contextlib
import torch
import torch.nn.functional as F
TOP

def score(model, batches):
    return [model(x) for x, _ in batches]

def main(model, optimizer, batches, half):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    BELOW
        print(score(model, batches))
"""
_RETURN = "    return [model(x) for x, _ in batches]"
_CAST = f"    with torch.cuda.amp.autocast():\n    {_RETURN}"


def _training(name: str, below: str, top: str = "") -> Training:
    before = _BEFORE.replace("TOP", top).replace("BELOW", below)
    after = _AFTER.replace("TOP", top).replace("BELOW", below)
    after = after.replace("amp.disable_casts()", "torch.cuda.amp.autocast(enabled=False)")
    faults = {"what runs there is cast": ((_RETURN, _CAST),)}
    return Training(name, {"main.py": before}, {"main.py": after}, faults)


_KEPT = """
class Casts:
    def __init__(self):
        self.off = amp.disable_casts()
"""
_GENERATOR = """
@contextlib.contextmanager
def exact(model):
    with amp.disable_casts():
        yield model
"""
_RETURNED = """
def exact():
    return amp.disable_casts()
"""
_STACK = """with contextlib.ExitStack() as stack:
        stack.enter_context(amp.disable_casts())"""
_GIVEN_NOTHING = """import torch
from apex import amp

def invert(network, images, targets):
    optimizer = torch.optim.Adam([images])
    _, optimizer = amp.initialize([], optimizer, opt_level="O2")
    for step in range(9):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), targets)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_SCALED_ALONE = """import torch

def invert(network, images, targets):
    optimizer = torch.optim.Adam([images])
    scaler = torch.cuda.amp.GradScaler()
    for step in range(9):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(images), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_SHARED = """import torch
import torch.nn.functional as F
from apex import amp

def attack(model, x, y, optimizer, half):
    x = x.clone().requires_grad_()
    loss = F.mse_loss(model(x), y)
    if half:
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            grad = torch.autograd.grad(scaled_loss, x)[0]
            grad /= scaled_loss / loss
    else:
        grad = torch.autograd.grad(loss, x)[0]
    return grad

def main(model, optimizer, x, y):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for _ in range(9):
        optimizer.zero_grad()
        loss = F.mse_loss(model(attack(model, x, y, optimizer, True)), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    with amp.disable_casts():
        attack(model, x, y, optimizer, False)
"""
_LENT = """import torch
import torch.nn.functional as F

def attack(model, x, y, optimizer, half, scaler):
    x = x.clone().requires_grad_()
    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
        loss = F.mse_loss(model(x), y)
    if half:
        scaled_loss = scaler.scale(loss)
        grad = torch.autograd.grad(scaled_loss, x)[0]
        grad /= scaled_loss / loss
    else:
        grad = torch.autograd.grad(loss, x)[0]
    return grad

def main(model, optimizer, x, y):
    scaler = torch.cuda.amp.GradScaler()
    for _ in range(9):
        optimizer.zero_grad()
        given = attack(model, x, y, optimizer, True, scaler)
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(model(given), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    with torch.cuda.amp.autocast(enabled=False):
        attack(model, x, y, optimizer, False, torch.cuda.amp.GradScaler(enabled=False))
"""
_HELPER = """from apex import amp

def backward(loss, optimizer, args):
    if getattr(args, "fp16", False):
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
    else:
        loss.backward()
"""
_HALF = """import torch
from apex import amp
from data import args, batches, net
from helper import backward

def main(args, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1", enabled=args.fp16)
    for x in batches:
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        backward(loss, optimizer, args)
        optimizer.step()

main(args, net, batches)
"""
_HALF_NOW = """import torch
from data import args, batches, net
from helper import backward

def main(args, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for x in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = net(x).pow(2).mean()
        backward(loss, optimizer, args, scaler)
        scaler.step(optimizer)
        scaler.update()

main(args, net, batches)
"""
_FULL = """import torch
from data import args, batches, net
from helper import backward

def main(args, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches:
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        backward(loss, optimizer, args)
        optimizer.step()

main(args, net, batches)
"""
_OFF = "torch.cuda.amp.GradScaler(enabled=False)"
_FULL_NOW = _FULL.replace("args)\n        opt", f"args, {_OFF})\n        opt")
_HELPER_NOW = """def backward(loss, optimizer, args, scaler):
    scaler.scale(loss).backward()
"""
_LOSS = "        loss = torch"
DISABLED = (
    Training(
        "a level that casts the models given, and none is",
        {"main.py": _GIVEN_NOTHING},
        {"main.py": _SCALED_ALONE},
        {
            "the network is cast": (
                (_LOSS, "        with torch.cuda.amp.autocast():\n            loss = torch"),
            ),
            "its scaler is off": (("GradScaler()", "GradScaler(enabled=False)"),),
        },
    ),
    _training("casts disabled by a block", "with amp.disable_casts():"),
    _training("casts disabled by an entry", "kinds = {'exact': amp.disable_casts()}\n    with kinds['exact']:"),
    _training("casts disabled by an attribute", "casts = Casts()\n    with casts.off:", _KEPT),
    _training("casts disabled by a generator", "with exact(model):", _GENERATOR),
    _training("casts disabled by what a function returns", "with exact():", _RETURNED),
    _training("casts disabled on a stack", _STACK),
    Training(
        "a shared helper of a program in full precision",
        {"helper.py": _HELPER, "half.py": _HALF, "full.py": _FULL},
        {"helper.py": _HELPER_NOW, "half.py": _HALF_NOW, "full.py": _FULL_NOW},
        {"it is handed a scaler that is on": ((_OFF, "torch.cuda.amp.GradScaler()"),)},
    ),
    Training(
        "a shared helper without casts",
        {"main.py": _SHARED},
        {"main.py": _LENT},
        {
            "it is handed the scaler": (("torch.cuda.amp.GradScaler(enabled=False)", "scaler"),),
            "its casts are on": ((".autocast(enabled=scaler.is_enabled())", ".autocast()"),),
        },
    ),
)  # fmt: skip
