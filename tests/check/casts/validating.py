"""A function that initializes for inference, and validates what training has initialized."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import sys
import torch
import torch.nn as nn
from apex import amp

def infer(model, x, engine="torch", validates=False):
    if engine == "torch":
        if not validates:
            model = amp.initialize(model, None, opt_level="O1")
        model.eval()
    with torch.no_grad():
        return model(x)

def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        infer(model, x, validates=True)

def main(batches):
    if sys.argv[1] == "train":
        train(nn.Linear(4, 2), batches)
    else:
        infer(nn.Linear(4, 2), batches[0], sys.argv[2])

main([])
"""
_AFTER = """import sys
import torch
import torch.nn as nn

def infer(model, x, engine="torch", validates=False):
    if engine == "torch":
        model.eval()
    with torch.no_grad(), torch.cuda.amp.autocast(enabled=validates or engine == "torch"):
        return model(x)

def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        infer(model, x, validates=True)

def main(batches):
    if sys.argv[1] == "train":
        train(nn.Linear(4, 2), batches)
    else:
        infer(nn.Linear(4, 2), batches[0], sys.argv[2])

main([])
"""
_BOTH, _OWN = 'validates or engine == "torch"', 'engine == "torch" and not validates'
VALIDATING = (
    Training(
        "inference that validates what is initialized",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"only its own initialize counts": ((_BOTH, _OWN),)},
    ),
)
