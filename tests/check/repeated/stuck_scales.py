"""Steps that the norm of gradients leaves out: the loss scale has to fall there, and faults with which it never does."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import math

import torch
from apex import amp


def train(model, optimizer, loader, loss_of):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
        {test}:
            optimizer.step()
        {clear}
"""
_AFTER = """
# file: train.py
import math

import torch


def train(model, optimizer, loader, loss_of):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1.0)
        {test}:
            scaler.step(optimizer)
        scaler.update()
        {clear}
"""
_PARAMETERS = '[p for group in optimizer.param_groups for p in group["params"]]'
_SCALED = (
    (f"        scaler.unscale_(optimizer)\n        norm = torch.nn.utils.clip_grad_norm_({_PARAMETERS}, 1.0)",
     f"        norm = torch.nn.utils.clip_grad_norm_({_PARAMETERS}, 1.0 * scaler.get_scale()) / scaler.get_scale()"),
    ("            scaler.step(optimizer)\n        scaler.update()\n",
     "            scaler.step(optimizer)\n            scaler.update()\n"),
)  # fmt: skip
_WAYS = {
    "a test of the norm": ("if math.isfinite(norm)", "optimizer.zero_grad()"),
    "a variable that holds what came of it": (
        "steps = not torch.isinf(norm)\n        if steps",
        "optimizer.zero_grad()",
    ),
    "a lambda that clears": ("if norm < 1e4", "(lambda: optimizer.zero_grad())()"),
    "a network that is cleared": ("if not norm.isnan()", "model.zero_grad()"),
}

STUCK_SCALES = tuple(
    Training(
        f"a step left out by {name}",
        files(_BEFORE.format(test=test, clear=clear)),
        files(_AFTER.format(test=test, clear=clear)),
        {"it stays on scaled gradients, and updates the scale with the step alone": _SCALED},
        (("AMP106", "train.py", 14 + test.count("\n"), 15 + test.count("\n"), True),),
    )
    for name, (test, clear) in _WAYS.items()
)
