"""Rounds in one autocast block, with gradients and without: whose casts are there already, and whose are none that train."""

from __future__ import annotations

from check.trainings.planted import Training

_HEAD = """import torch
import torch.nn.functional as F
from torch import nn
from apex import amp

"""
_JUDGES = """
net = nn.Linear(4, 6).cuda()
judges = [nn.Linear(6, 3).cuda() for _ in range(3)]
optimizer = torch.optim.SGD([*net.parameters(), *(p for j in judges for p in j.parameters())], lr=0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
for x, real in loader:
    loss = 0
    for judge in judges:
        score = judge(net(x))
        with torch.no_grad():
            wanted = WANTED(real)
        loss = loss + F.mse_loss(score, wanted)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""
_JUDGED = """
net = nn.Linear(4, 6).cuda()
judges = [nn.Linear(6, 3).cuda() for _ in range(3)]
optimizer = torch.optim.SGD([*net.parameters(), *(p for j in judges for p in j.parameters())], lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, real in loader:
    with torch.cuda.amp.autocast():
        loss = 0
        for judge in judges:
            score = judge(net(x))
            with torch.no_grad():
                wanted = WANTED(real)
            torch.clear_autocast_cache()
            loss = loss + F.mse_loss(score, wanted)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
_GATED = """

class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.update = nn.Linear(4, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        with torch.no_grad():
            x = self.update(x)
        return self.head(self.update(x))


net = Gated().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
for x, y in loader:
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""
_CLEARED = "            torch.clear_autocast_cache()\n"
_NATIVE = _HEAD.replace("from apex import amp\n", "")
_GATED_AFTER = (
    _GATED.replace(
        "        return self.head", "        torch.clear_autocast_cache()\n        return self.head"
    )
    .replace(
        'net, optimizer = amp.initialize(net, optimizer, opt_level="O1")',
        "scaler = torch.cuda.amp.GradScaler()",
    )
    .replace(
        "    loss = F.cross_entropy(net(x), y)\n",
        "    with torch.cuda.amp.autocast():\n        loss = F.cross_entropy(net(x), y)\n",
    )
    .replace(
        "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    )
)

CASTS_IN_ROUNDS = (
    Training(
        "networks of a loop that ran with gradients before",
        {"train.py": _HEAD + _JUDGES.replace("WANTED", "judge")},
        {"train.py": _NATIVE + _JUDGED.replace("WANTED", "judge").replace(_CLEARED, "")},
        {
            "another one is asked in the block": (
                ("            score = judge(net(x))\n", ""),
                (
                    "            loss = loss",
                    "            score = judge(net(x))\n            loss = loss",
                ),
            ),
        },
    ),
    Training(
        "the next network of a loop without gradients first",
        {"train.py": _HEAD + _JUDGES.replace("WANTED", "judges[-1]")},
        {"train.py": _NATIVE + _JUDGED.replace("WANTED", "judges[-1]")},
        {"what it casts is kept": ((_CLEARED, ""),)},
    ),
    Training(
        "a layer that is called as a method of dicts is",
        {"train.py": _HEAD + _GATED},
        {"train.py": _NATIVE + _GATED_AFTER},
        {
            "what it casts without gradients is kept": (
                ("        torch.clear_autocast_cache()\n", ""),
            )
        },
    ),
)
