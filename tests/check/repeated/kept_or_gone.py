"""Optimizers that are gone behind the function that made them, and such as somebody keeps: those are stepped again."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """\
import torch
import torch.nn.functional as F
from apex import amp


class Trainer:
    def __init__(self, net):
        self.net = net

    def warm_up(self, batches):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.net, optimizer = amp.initialize(self.net, optimizer, opt_level="O1")
        for x, y in batches:
            loss = F.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
{keep}

    def train(self, batches):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.net, optimizer = amp.initialize(self.net, optimizer, opt_level="O1")
        for x, y in batches:
            loss = F.mse_loss(self.net(x), y)
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


trainer = Trainer(torch.nn.Linear(4, 2))
trainer.warm_up([])
trainer.train([])
"""
_AFTER = """\
import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net):
        self.net = net

    def warm_up(self, batches):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in batches:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.net(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
{keep}

    def train(self, batches):
        optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        scaler = torch.cuda.amp.GradScaler()
        for x, y in batches:
            with torch.cuda.amp.autocast():
                loss = F.mse_loss(self.net(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)


trainer = Trainer(torch.nn.Linear(4, 2))
trainer.warm_up([])
trainer.train([])
"""
_LIMITS = {"first": "1.0", "second": "0.5"}
_CLEARS = {"first": "optimizer.zero_grad()", "second": "optimizer.zero_grad(set_to_none=True)"}
_KEPT = {
    "nothing": "",
    "what is returned to nobody": "        return self.net",
    "a learning rate": "        self.rate = optimizer.param_groups[0]['lr']",
}


def _faults(which: str) -> dict[str, tuple[tuple[str, str], ...]]:
    clip = f"            torch.nn.utils.clip_grad_norm_(self.net.parameters(), {_LIMITS[which]})\n"
    unscale = "            scaler.unscale_(optimizer)\n"
    clear = f"            {_CLEARS[which]}\n"
    update = "            scaler.update()\n"
    return {
        f"the {which} reads gradients before they are unscaled": ((unscale + clip, clip),),
        f"the {which} unscales twice": ((unscale + clip, unscale + unscale + clip),),
        f"the {which} never updates the scale": ((update + clear, clear),),
    }


KEPT_OR_GONE = tuple(
    Training(
        f"two trainings of one network, of which the first keeps {name}",
        {"train.py": _BEFORE.format(keep=keep)},
        {"train.py": _AFTER.format(keep=keep)},
        {**_faults("first"), **_faults("second")},
    )
    for name, keep in _KEPT.items()
)
