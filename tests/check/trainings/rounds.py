"""Loops that get the same optimizer again in each round, and wrappers that step one."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
import torch.nn as nn
from apex import amp

def rounds(net, optimizer, batches):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        yield optimizer, loss

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for optimizer, loss in rounds(net, optimizer, batches):
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()

main([])
"""
_AFTER = """import torch
import torch.nn as nn

def rounds(net, optimizer, batches, scaler):
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        yield optimizer, loss

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for optimizer, loss in rounds(net, optimizer, batches, scaler):
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_UPDATE = "        scaler.update()\n"
_SHOWN = """def shown(given):
    print("rounds")
    return given

def main("""
_WRAPPED_BEFORE = """import torch
import torch.nn as nn
from apex import amp

class Warmup:
    def __init__(self, inner):
        self.inner = inner

    def step(self):
        self.apply()

    def apply(self):
        self.inner.step()

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    optimizer = Warmup(optimizer)
    for x, y in batches:
        optimizer.inner.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer.inner) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_WRAPPED_AFTER = """import torch
import torch.nn as nn

class Warmup:
    def __init__(self, inner):
        self.inner = inner

    def step(self, scaler):
        self.apply(scaler)

    def apply(self, scaler):
        scaler.step(self.inner)
        scaler.update()

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    optimizer = Warmup(optimizer)
    for x, y in batches:
        optimizer.inner.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        optimizer.step(scaler)

main([])
"""
_BY_ITSELF = "        optimizer.step(scaler)\n"


def _shown(text: str) -> str:
    """Return a training that gets its rounds from a helper."""
    call = next(line for line in text.splitlines() if " in rounds(" in line)
    head, _, given = call.rstrip(":").partition(" in ")
    return text.replace("def main(", _SHOWN).replace(call, f"{head} in shown({given}):")


ROUNDS = (
    Training(
        "batches hand their optimizer along",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"update() follows the loop": ((_UPDATE, "    scaler.update()\n"),)},
    ),
    Training(
        "a helper gives the batches that hand their optimizer along",
        {"main.py": _shown(_BEFORE)},
        {"main.py": _shown(_AFTER)},
        {"update() follows the loop": ((_UPDATE, "    scaler.update()\n"),)},
    ),
    Training(
        "a wrapper steps by a further method",
        {"main.py": _WRAPPED_BEFORE},
        {"main.py": _WRAPPED_AFTER},
        {
            "the GradScaler gets the wrapper": (
                (_BY_ITSELF, "        scaler.step(optimizer)\n        scaler.update()\n"),
            )
        },
    ),
)
