"""What stood behind a branch that held nothing but Apex says by itself when it runs."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def main(mode, fast, data):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if mode == "apex":
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    {rest}:
        model = torch.jit.script(model)
    for x, y in data:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if mode == "apex":
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def main(mode, fast, data):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=mode == "apex")
    if {test}:
        model = torch.jit.script(model)
    for x, y in data:
        with torch.cuda.amp.autocast(enabled=mode == "apex"):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


def _branch(name: str, rest: str, test: str, *wrong: str) -> Training:
    return Training(
        name,
        files(_BEFORE.replace("{rest}", rest)),
        files(_AFTER.replace("{test}", test)),
        {f"it runs if {other}": ((f"    if {test}:", f"    if {other}:"),) for other in wrong},
    )


EMPTIED_BRANCHES = (
    _branch("what stood in an else", "else", 'mode != "apex"', 'mode == "apex"', "fast"),
    _branch(
        "what another test let run",
        "elif fast",
        'mode != "apex" and fast',
        "fast",
        'mode == "apex" and fast',
        'mode != "apex"',
        'mode != "apex" or fast',
        'not (mode == "apex" and fast)',
    ),
    _branch(
        "what a test let run that excludes it",
        'elif mode == "script"',
        'mode == "script"',
        'mode != "apex"',
        'mode != "script"',
        'mode == "apex"',
    ),
    _branch(
        "what a test let run that may hold as well",
        'elif fast == "apex"',
        'mode != "apex" and fast == "apex"',
        'fast == "apex"',
    ),
)
