"""Networks that a criterion runs which is given them: its call is their forward, in training and evaluation."""

from __future__ import annotations

from check.trainings.planted import Training

_CRITERION = """import torch
from torch import nn


class Criterion(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, net, sample):
        scores = net(sample["x"])
        return (1 - self.smoothing) * nn.functional.cross_entropy(scores, sample["y"])
"""
_BEFORE = """import torch
from apex import amp
from criterion import Criterion
from torch import nn


def main(loader):
    net = nn.Linear(4, 3)
    measure = Criterion(0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for sample in loader:
        optimizer.zero_grad()
        loss = measure(net, sample)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
    with torch.no_grad():
        for sample in loader:
            found = measure(net, sample)
            print(found.item())


main([])
"""
_TRAINED = """        with torch.cuda.amp.autocast():
            loss = measure(net, sample)
"""
_EVALUATED = """            with torch.cuda.amp.autocast():
                found = measure(net, sample)
"""
_AFTER = f"""import torch
from criterion import Criterion
from torch import nn


def main(loader):
    net = nn.Linear(4, 3)
    measure = Criterion(0.1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for sample in loader:
        optimizer.zero_grad()
{_TRAINED}        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    with torch.no_grad():
        for sample in loader:
{_EVALUATED}            print(found.item())


main([])
"""
RUN_BY_CRITERIA = [
    Training(
        "a_criterion_runs_the_network",
        {"main.py": _BEFORE, "criterion.py": _CRITERION},
        {"main.py": _AFTER, "criterion.py": _CRITERION},
        {
            "a training in fp32": ((_TRAINED, "        loss = measure(net, sample)\n"),),
            "an evaluation in fp32": ((_EVALUATED, "            found = measure(net, sample)\n"),),
        },
    ),
]
