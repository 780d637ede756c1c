"""Networks that `torch.jit.trace` records inside of an autocast block, which torch refuses."""

from __future__ import annotations

from check.trainings.planted import Training, files

_SCRIPT_BEFORE = """\
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt = amp.initialize(net, opt)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    with amp.scale_loss(loss, opt) as scaled:
        scaled.backward()
    opt.step()
net.eval()
traced = torch.jit.trace(net, torch.randn(1, 4))
traced.save("net.pt")
"""
_SCRIPT_AFTER = """\
# file: train.py
import torch
import torch.nn.functional as F

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
net.eval()
traced = torch.jit.trace(net, torch.randn(1, 4))
traced.save("net.pt")
"""
_HELPER_BEFORE = """\
# file: export.py
import torch

def record(net, x):
    net.eval()
    return torch.jit.trace(net, x)

def evaluate(net, x):
    with torch.no_grad():
        out = net(x)
    recorded = record(net, x)
    return out, recorded
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp
from export import evaluate

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt = amp.initialize(net, opt)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    with amp.scale_loss(loss, opt) as scaled:
        scaled.backward()
    opt.step()
    print(evaluate(net, x))
"""
_HELPER_AFTER = """\
# file: export.py
import torch

def record(net, x):
    net.eval()
    return torch.jit.trace(net, x)

def evaluate(net, x):
    with torch.no_grad():
        with torch.cuda.amp.autocast():
            out = net(x)
    recorded = record(net, x)
    return out, recorded
# file: train.py
import torch
import torch.nn.functional as F
from export import evaluate

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    print(evaluate(net, x))
"""

RECORDED = (
    Training(
        "a script records its network",
        files(_SCRIPT_BEFORE),
        files(_SCRIPT_AFTER),
        {
            "the recording stands in a block": (
                (
                    "traced = torch.jit.trace(net, torch.randn(1, 4))\n",
                    "with torch.cuda.amp.autocast():\n    traced = torch.jit.trace(net, torch.randn(1, 4))\n",
                ),
            ),
            "so does that of a helper": (
                ("traced = torch.jit.trace(net, torch.randn(1, 4))\n", "traced = record(net)\n"),
                (
                    "net = torch.nn.Linear(4, 3)\n",
                    "def record(net):\n    with torch.cuda.amp.autocast():\n        return torch.jit.trace(net, torch.randn(1, 4))\n\nnet = torch.nn.Linear(4, 3)\n",
                ),
            ),
        },
        (("AMP107", "train.py", 15, 15, True),),
    ),
    Training(
        "a helper of another file records a network",
        files(_HELPER_BEFORE),
        files(_HELPER_AFTER),
        {
            "its caller has it run in a block": (
                (
                    "    recorded = record(net, x)\n",
                    "    with torch.cuda.amp.autocast():\n        recorded = record(net, x)\n",
                ),
            ),
            "the program does": (
                (
                    "    print(evaluate(net, x))",
                    "    with torch.cuda.amp.autocast():\n        print(evaluate(net, x))",
                ),
            ),
        },
        (("AMP107", "export.py", 5, 5, True),),
    ),
)
