"""Evaluations by what training runs deeper down: a helper of a helper, and one that ``map`` runs."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """from functools import partial
import torch
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

def scored(network, batch):
    with torch.no_grad():
        return network(batch[0]).norm().item()

train([])
SCORED
"""
_AFTER = """from functools import partial
import torch
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

def scored(network, batch):
    with torch.no_grad(), torch.cuda.amp.autocast():
        return network(batch[0]).norm().item()

train([])
SCORED
"""
_CAST = "    with torch.no_grad(), torch.cuda.amp.autocast():"
_WAYS = {
    "called": "print([outputs_of(batch) for batch in batches])",
    "run by map": "print(list(map(outputs_of, batches)))",
    "run by map in a loop": "for outputs in map(outputs_of, batches): print(outputs)",
    "run by a lambda of map": "print(list(map(lambda batch: outputs_of(batch), batches)))",
}
_PARTIALS = {
    "a partial of map": "print(list(map(partial(scored, network), [])))",
    "a partial by a name": "score = partial(scored, network); print(list(map(score, [])))",
}


def _run(evaluated: str, scored: str) -> tuple[dict[str, str], dict[str, str]]:
    texts = (t.replace("EVALUATED", f"        {evaluated}") for t in (_BEFORE, _AFTER))
    before, after = ({"main.py": t.replace("SCORED", scored)} for t in texts)
    return before, after


MAPPED = (
    *(
        Training(
            f"a helper of what computes the loss, {name}",
            *_run(text, "scored(network, [])"),
            {"it is not cast": ((_CAST + "\n        ", "    with torch.no_grad():\n        "),)},
        )
        for name, text in _WAYS.items()
    ),
    *(
        Training(
            f"an evaluation run by {name}",
            *_run(_WAYS["called"], text),
            {
                "it is not cast": (
                    (_CAST + "\n        return", "    with torch.no_grad():\n        return"),
                )
            },
        )
        for name, text in _PARTIALS.items()
    ),
)
