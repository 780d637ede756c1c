"""Programs that share files with one that keeps Apex: a native block in what that runs would cast there as well."""

from __future__ import annotations

from check.trainings.planted import Training

_SHARED = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 3)

    def forward(self, x):
        return self.body(x)


def accuracy(net, batches):
    right = 0
    with torch.no_grad():
        for x, y in batches:
            right += int((net(x).argmax(-1) == y).sum())
    return right


def perturbed(net, x, y):
    delta = torch.zeros_like(x, requires_grad=True)
    loss = F.cross_entropy(net(x + delta), y)
    return x + torch.autograd.grad(loss, delta)[0].sign()


def losses(net, batches):
    for x, y in batches:
        yield F.cross_entropy(net(x), y)
"""
_PROGRAM = """import torch
from apex import amp
from shared import Net, accuracy, losses, perturbed

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
batches = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
for x, y in batches:
    optimizer.zero_grad()
    loss = net(x).log_softmax(-1).gather(1, y[:, None]).mean()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
_NATIVE = """import torch
from shared import Net, accuracy, losses, perturbed

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
batches = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
for x, y in batches:
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = net(x).log_softmax(-1).gather(1, y[:, None]).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
_KEPT = """print(accuracy(net, batches))
print(perturbed(net, *batches[0]).sum().item())
print(sum(loss.item() for loss in losses(net, batches)))
"""
_SCORED = "print(accuracy(net, batches))\n"
_NO_GRAD = "    with torch.no_grad():\n"
_LOSS = "    loss = F.cross_entropy(net(x + delta), y)\n"
_FORWARD = "        return self.body(x)\n"
_YIELD = "        yield F.cross_entropy(net(x), y)\n"
_CASTS = "with torch.cuda.amp.autocast():\n"
_FAULTS = {
    "the evaluation is cast": (
        (_NO_GRAD, "    with torch.no_grad(), torch.cuda.amp.autocast():\n"),
    ),
    "the attack is cast": ((_LOSS, f"    {_CASTS}    {_LOSS}"),),
    "the forward of the network is cast": ((_FORWARD, f"        {_CASTS}    {_FORWARD}"),),
    "the generator casts": (
        (
            _YIELD,
            f"        {_CASTS}            loss = F.cross_entropy(net(x), y)\n        yield loss\n",
        ),
    ),
}

CAST_TWICE = (
    Training(
        "a program that keeps Apex runs what is shared",
        {"shared.py": _SHARED, "go.py": _PROGRAM + _SCORED, "stay.py": _PROGRAM + _KEPT},
        {
            "shared.py": _SHARED,
            "go.py": f"{_NATIVE}{_CASTS}    {_SCORED}",
            "stay.py": _PROGRAM + _KEPT,
        },
        _FAULTS,
    ),
    Training(
        "a program that keeps Apex runs only the network of what is shared",
        {"shared.py": _SHARED, "go.py": _PROGRAM + _SCORED, "stay.py": _PROGRAM},
        {
            "shared.py": _SHARED.replace(*_FAULTS["the evaluation is cast"][0]),
            "go.py": _NATIVE + _SCORED,
            "stay.py": _PROGRAM,
        },
        {"the forward of the network is cast": ((_FORWARD, f"        {_CASTS}    {_FORWARD}"),)},
    ),
)
"""Where nothing of the program that stays comes to a block, it may stand in a file that both import."""
