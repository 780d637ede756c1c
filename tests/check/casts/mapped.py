"""Evaluations by what training runs deeper down: a helper of a helper, and one that ``map`` runs."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp

network = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
network, optimizer = amp.initialize(network, optimizer, opt_level="O1")

def outputs_of(batch):
    return network(batch[0])

def loss_of(batch):
    return F.mse_loss(outputs_of(batch), batch[1])

def learn(loss):
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
    optimizer.zero_grad()

def train(batches):
    for batch in batches:
        learn(loss_of(batch))
    with torch.no_grad():
EVALUATED
train([])
"""
_AFTER = """import torch
import torch.nn.functional as F

network = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()

def outputs_of(batch):
    return network(batch[0])

def loss_of(batch):
    return F.mse_loss(outputs_of(batch), batch[1])

def learn(loss):
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()

def train(batches):
    for batch in batches:
        with torch.cuda.amp.autocast():
            loss = loss_of(batch)
        learn(loss)
    with torch.no_grad(), torch.cuda.amp.autocast():
EVALUATED
train([])
"""
_CAST = "    with torch.no_grad(), torch.cuda.amp.autocast():"
_WAYS = {
    "called": "print([outputs_of(batch) for batch in batches])",
    "run by map": "print(list(map(outputs_of, batches)))",
    "run by map in a loop": "for outputs in map(outputs_of, batches): print(outputs)",
    "run by a lambda of map": "print(list(map(lambda batch: outputs_of(batch), batches)))",
}
MAPPED = tuple(
    Training(
        f"a helper of what computes the loss, {name}",
        {"main.py": _BEFORE.replace("EVALUATED", f"        {text}")},
        {"main.py": _AFTER.replace("EVALUATED", f"        {text}")},
        {"it is not cast": ((_CAST, "    with torch.no_grad():"),)},
    )
    for name, text in _WAYS.items()
)
