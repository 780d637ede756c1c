"""Loops over optimizers within each other: what stands in the inner one meets each optimizer in every turn of the outer one."""

from __future__ import annotations

from check.trainings.planted import Training, skipped_apart

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp
from torch.nn.utils import clip_grad_norm_

a, b = torch.nn.Linear(7, 5), torch.nn.Linear(5, 3)
opts = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (a, b)]
(a, b), opts = amp.initialize([a, b], opts, opt_level="O1")
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    loss = F.mse_loss(b(a(x)), y)
    with amp.scale_loss(loss, opts) as scaled_loss:
        scaled_loss.backward()
    for opt in opts:
        clip_grad_norm_(amp.master_params(opt), 1.0)
    for opt in opts:
        opt.step()
        opt.zero_grad()
"""
_AFTER = """import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_

a, b = torch.nn.Linear(7, 5), torch.nn.Linear(5, 3)
opts = [torch.optim.SGD(part.parameters(), lr=0.1) for part in (a, b)]
scaler = torch.cuda.amp.GradScaler()
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(b(a(x)), y)
    scaler.scale(loss).backward()
    for opt in opts:
        scaler.unscale_(opt)
        clip_grad_norm_([p for group in opt.param_groups for p in group["params"]], 1.0)
    for opt in opts:
        scaler.step(opt)
        opt.zero_grad()
    scaler.update()
"""
_UNSCALE = "        scaler.unscale_(opt)\n"

_LISTS = {
    "before": """import torch
import torch.nn.functional as F
from apex import amp


def learn(model, optimizer, x, y):
    model.zero_grad()
    loss = F.mse_loss(model(x), y)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    print(sum(p.grad.norm() for p in model.parameters()))
    if isinstance(optimizer, list):
        for one in optimizer:
            one.step()
    else:
        optimizer.step()


model = torch.nn.Linear(7, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
model, opt = amp.initialize(model, opt, opt_level="O1")
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    learn(model, [opt], x, y)
""",
    "after": """import torch
import torch.nn.functional as F


def learn(model, optimizer, x, y):
    model.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(model(x), y)
    scaler.scale(loss).backward()
    if isinstance(optimizer, list):
        for one in optimizer:
            scaler.unscale_(one)
    else:
        scaler.unscale_(optimizer)
    print(sum(p.grad.norm() for p in model.parameters()))
    if isinstance(optimizer, list):
        for one in optimizer:
            scaler.step(one)
    else:
        scaler.step(optimizer)
    scaler.update()


model = torch.nn.Linear(7, 3)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, y in [(torch.randn(6, 7), torch.randn(6, 3))]:
    learn(model, [opt], x, y)
""",
}
_ONE_BY_ONE = """    if isinstance(optimizer, list):
        for one in optimizer:
            scaler.{method}(one)
    else:
        scaler.{method}(optimizer)
"""

NESTED = [
    skipped_apart(
        Training(
            "optimizers unscaled one by one",
            {"train.py": _BEFORE},
            {"train.py": _AFTER},
            {
                "all of them for each one, by its name": (
                    (_UNSCALE, "        for opt in opts:\n            scaler.unscale_(opt)\n"),
                ),
                "all of them for each one, by another name": (
                    (_UNSCALE, "        for o in opts:\n            scaler.unscale_(o)\n"),
                ),
                "the first of them for each one": (
                    (_UNSCALE, "        scaler.unscale_(opts[0])\n"),
                ),
            },
        )
    ),
    Training(
        "a list of optimizers or one",
        {"train.py": _LISTS["before"]},
        {"train.py": _LISTS["after"]},
        {
            f"the list is given to {method}": (
                (_ONE_BY_ONE.format(method=method), f"    scaler.{method}(optimizer)\n"),
            )
            for method in ("unscale_", "step")
        },
    ),
]
