"""Objects that a library makes of a network: calling one runs the network."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn as nn
from apex import amp
from contrast import Learner

def main(batches):
    net = nn.Linear(4, 2)
    learner = Learner(net, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in batches:
        learner(x, keep=True)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_AFTER = """import torch
import torch.nn as nn
from contrast import Learner

def main(batches):
    net = nn.Linear(4, 2)
    learner = Learner(net, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        with torch.cuda.amp.autocast():
            learner(x, keep=True)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_UNWRAPPED = """import torch
import torch.nn as nn
from accelerate import Accelerator
from apex import amp

def main(batches, held):
    accelerator = Accelerator()
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    for x in held:
        print(accelerator.unwrap_model(net)(x))

main([], [])
"""
_UNWRAPPED_AFTER = """import torch
import torch.nn as nn
from accelerate import Accelerator

def main(batches, held):
    accelerator = Accelerator()
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    for x in held:
        with torch.cuda.amp.autocast():
            print(accelerator.unwrap_model(net)(x))

main([], [])
"""
_CAST = "        with torch.cuda.amp.autocast():\n            learner(x, keep=True)"
HOLDERS = (
    Training(
        "what a library makes of the network is called",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"it is called without casts": ((_CAST, "        learner(x, keep=True)"),)},
    ),
    Training(
        "what a library unwraps is called",
        {"main.py": _UNWRAPPED},
        {"main.py": _UNWRAPPED_AFTER},
        {
            "it is called without casts": (
                (
                    "        with torch.cuda.amp.autocast():\n            print(",
                    "        print(",
                ),
            ),
        },
    ),
)
