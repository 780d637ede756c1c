"""Networks run by functions of Python that are told what to run, and layers run one by one: none of them loses its casts."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import operator
import torch
import torch.nn.functional as F
from apex import amp


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def evaluate(net, batches):
    total = 0
    with torch.no_grad():
        for x, y in batches:
            total += (RUN).sum().item()
    return total


def main(batches):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt = amp.initialize(net, opt, opt_level="O1")
    for x, y in batches:
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        with amp.scale_loss(loss, opt) as scaled:
            scaled.backward()
        opt.step()
    return evaluate(net, batches)
"""
_AFTER = """
# file: train.py
import operator
import torch
import torch.nn.functional as F


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def evaluate(net, batches):
    total = 0
    with torch.no_grad():
        for x, y in batches:
            with torch.cuda.amp.autocast():
                total += (RUN).sum().item()
    return total


def main(batches):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    return evaluate(net, batches)
"""
_BLOCK = "            with torch.cuda.amp.autocast():\n                total"
_RUNS = {
    "a method that is called by its name": "operator.methodcaller('forward', x)(net)",
    "a method that is got by its name": "operator.attrgetter('forward')(net)(x)",
    "a call of Python": "operator.call(net, x)",
    "a method of its class": "type(net).forward(net, x)",
    "a method of all modules": "torch.nn.Module.__call__(net, x)",
    "an item of its layers": "net.blocks[0](x)",
    "the forward of an item of its layers": "net.blocks[-1].forward(x)",
}
_IDLE = "operator.methodcaller('train', False)(net)"


def _run(name: str, text: str) -> Training:
    before, after = (files(part.replace("RUN", text)) for part in (_BEFORE, _AFTER))
    return Training(
        f"evaluated by {name}", before, after, {"no casts": ((_BLOCK, "            total"),)}
    )


def _idle() -> Training:
    line = f"            {_IDLE}\n            RUN\n"
    before, after = (
        files(
            part.replace(
                "            total += (RUN).sum().item()\n", line.replace("RUN", "y.sum()")
            )
        )
        for part in (_BEFORE, _AFTER.replace(_BLOCK, "            total"))
    )
    return Training("a method by its name that runs nothing", before, after, {})


ROUNDABOUT_RUNS = (*(_run(*item) for item in _RUNS.items()), _idle())
