"""Statements, functions, classes and patches that come into a text and have nothing to do with AMP."""

from __future__ import annotations

from check.trainings.planted import Training, files

_DDP_BEFORE = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F
from apex import amp
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, model, head, loader):
    opt = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    [model, head], opt = amp.initialize([model, head], opt, opt_level="O1")
    model = DDP(model)
    head.weight.register_hook(lambda g: g * 0.5)
    for i, (x, y) in enumerate(loader):
        try:
            feats = model(x)
            loss = F.mse_loss(head(feats), y)
            aux = feats.square().mean()
            opt.zero_grad()
            with amp.scale_loss(loss, opt) as s:
                s.backward(retain_graph=True)
            with amp.scale_loss(aux, opt) as s:
                s.backward()
            opt.step()
        finally:
            model.train()
"""

_DDP_AFTER = """
# file: train.py
import contextlib
import torch
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP


def train(args, model, head, loader):
    opt = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    model = DDP(model)
    head.weight.register_hook(lambda g: g * 0.5)
    for i, (x, y) in enumerate(loader):
        try:
            with torch.cuda.amp.autocast():
                feats = model(x)
                loss = F.mse_loss(head(feats), y)
                aux = feats.square().mean()
            opt.zero_grad()
            scaler.scale(loss).backward(retain_graph=True)
            scaler.scale(aux).backward()
            scaler.step(opt)
            scaler.update()
        finally:
            model.train()
"""

_RUNNER_BEFORE = """
# file: net.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)

    def forward(self, x):
        return self.body(x).relu()
# file: main.py
import torch
from apex import amp
from net import Net


class Runner:
    def __init__(self):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def step(self, x):
        out = self.net(x).mean()
        self.opt.zero_grad()
        with amp.scale_loss(out, self.opt) as s:
            s.backward()
        self.opt.step()
        return out


def main():
    run = Runner()
    for _ in range(3):
        print(run.step(torch.randn(2, 4)))


main()
"""

_RUNNER_AFTER = """
# file: net.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)

    def forward(self, x):
        return self.body(x).relu()
# file: main.py
import torch
from net import Net


class Runner:
    def __init__(self):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.scaler = torch.cuda.amp.GradScaler()

    def step(self, x):
        with torch.cuda.amp.autocast():
            out = self.net(x).mean()
        self.opt.zero_grad()
        self.scaler.scale(out).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        return out


def main():
    run = Runner()
    for _ in range(3):
        print(run.step(torch.randn(2, 4)))


main()
"""

FOREIGN = (
    Training(
        "a script that nothing else may come into",
        files(_DDP_BEFORE),
        files(_DDP_AFTER),
        {
            "class patched in": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Half(torch.nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n\n    def forward(self, x):\n        return self.net(x) * 2\n",
                ),
                ("    model = DDP(model)\n", "    model = DDP(model)\n    model = Half(model)\n"),
            ),
            "class used for head": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Half(torch.nn.Linear):\n    def forward(self, x):\n        return super().forward(x) * 2\n",
                ),
                ("    model = DDP(model)\n", "    model = DDP(model)\n    head.__class__ = Half\n"),
            ),
            "own GradScaler class": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Scaler(torch.cuda.amp.GradScaler):\n    def update(self, new_scale=None):\n        super().update(1.0)\n",
                ),
                ("torch.cuda.amp.GradScaler()\n    model", "Scaler()\n    model"),
            ),
            "own autocast class": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Casts(torch.cuda.amp.autocast):\n    def __init__(self):\n        super().__init__(enabled=False)\n",
                ),
                ("torch.cuda.amp.autocast()", "Casts()"),
            ),
            "own optimizer class": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\nclass Opt(torch.optim.SGD):\n    def step(self, closure=None):\n        pass\n",
                ),
                ("torch.optim.SGD(", "Opt("),
            ),
            "method patched": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    head.forward = lambda x: x * 2\n",
                ),
            ),
            "class method patched": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.nn.Linear.forward = lambda s, x: x @ s.weight.t()\n",
                ),
            ),
            "patched at module": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\ntorch.nn.Linear.forward = lambda s, x: x @ s.weight.t()\n",
                ),
            ),
            "patched optimizer step": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    opt.step = lambda *a, **k: None\n",
                ),
            ),
            "patched F": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\nF.mse_loss = F.l1_loss\n",
                ),
            ),
            "patched scaler": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    scaler.update = lambda: None\n",
                ),
            ),
            "scaler attr": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    scaler._growth_factor = 1.0\n",
                ),
            ),
            "scaler set": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    scaler.set_growth_interval(2)\n",
                ),
            ),
            "setattr": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    setattr(head, 'forward', lambda x: x)\n",
                ),
            ),
            "monkey method": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    model.forward = model.module.forward\n",
                ),
            ),
            "cudnn": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.backends.cudnn.deterministic = True\n",
                ),
            ),
            "seed": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    torch.manual_seed(0)\n"),
            ),
            "threads": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.set_grad_enabled(False)\n",
                ),
            ),
            "weights zeroed": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    head.weight.data.zero_()\n",
                ),
            ),
            "weights init": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.nn.init.zeros_(head.weight)\n",
                ),
            ),
            "loader cut": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    loader = loader[:1]\n"),
            ),
            "loader list": (("in enumerate(loader)", "in enumerate(list(loader)[:1])"),),
            "x doubled": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            x = x * 2\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "x in place": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            x.mul_(2)\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "y changed": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            y = torch.zeros_like(y)\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "loss changed in cast": (
                (
                    "                aux = feats",
                    "                loss = loss * 2\n                aux = feats",
                ),
            ),
            "loss += ": (
                (
                    "                aux = feats",
                    "                loss += aux\n                aux = feats",
                ),
            ),
            "feats changed": (
                (
                    "                loss = F",
                    "                feats = feats.relu()\n                loss = F",
                ),
            ),
            "feats in place": (
                (
                    "                loss = F",
                    "                feats.mul_(2)\n                loss = F",
                ),
            ),
            "second opt": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    opt = torch.optim.SGD(model.parameters(), lr=0.2)\n",
                ),
            ),
            "opt changed lr": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    opt.param_groups[0]['lr'] = 0\n",
                ),
            ),
            "opt group loop": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    for g in opt.param_groups:\n        g['lr'] *= 2\n",
                ),
            ),
            "opt state cleared": (
                (
                    "            scaler.step(opt)\n",
                    "            scaler.step(opt)\n            opt.state.clear()\n",
                ),
            ),
            "sched new": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    sched = torch.optim.lr_scheduler.StepLR(opt, 1)\n",
                ),
                (
                    "            scaler.step(opt)\n",
                    "            scaler.step(opt)\n            sched.step()\n",
                ),
            ),
            "global statement": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\ntorch.set_default_dtype(torch.float16)\n",
                ),
            ),
            "import *": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom numpy import *\n",
                ),
            ),
            "import rebound": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\nimport numpy as F\n",
                ),
            ),
            "function shadowed": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef DDP(model):\n    return model.half()\n",
                ),
            ),
            "call new helper": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef prepare(model):\n    model.half()\n    return model\n",
                ),
                ("    model = DDP(model)\n", "    model = DDP(prepare(model))\n"),
            ),
            "call new helper stmt": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n\n\ndef prepare(model):\n    model.half()\n",
                ),
                ("    model = DDP(model)\n", "    model = DDP(model)\n    prepare(head)\n"),
            ),
            "del": (("    model = DDP(model)\n", "    model = DDP(model)\n    del head.bias\n"),),
            "head deep": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    head.bias = None\n"),
            ),
            "exec": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    exec('head.half()')\n"),
            ),
            "for loop new": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            for p in head.parameters():\n                p.data *= 0.9\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "with new ctx": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.cuda.amp.autocast(), torch.autograd.graph.save_on_cpu():\n",
                ),
            ),
            "matmul precision": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.set_float32_matmul_precision('medium')\n",
                ),
            ),
            "env": (
                (
                    "from torch.nn.parallel import DistributedDataParallel as DDP\n",
                    "from torch.nn.parallel import DistributedDataParallel as DDP\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n",
                ),
            ),
        },
    ),
    Training(
        "a class that nothing else may come into",
        files(_RUNNER_BEFORE),
        files(_RUNNER_AFTER),
        {
            "method overridden": (
                (
                    "    def step(self, x):",
                    "    def __getattr__(self, n):\n        return None\n\n    def step(self, x):",
                ),
            ),
            "subclass used": (
                (
                    "def main():\n    run = Runner()",
                    "class Other(Runner):\n    def step(self, x):\n        return super().step(x * 2)\n\n\ndef main():\n    run = Other()",
                ),
            ),
            "patched method": (
                (
                    "    run = Runner()\n",
                    "    run = Runner()\n    Net.forward = lambda self, x: self.body(x)\n",
                ),
            ),
            "patched instance": (
                (
                    "    run = Runner()\n",
                    "    run = Runner()\n    run.net.forward = run.net.body\n",
                ),
            ),
            "net attr": (
                ("    run = Runner()\n", "    run = Runner()\n    run.net.body.bias = None\n"),
            ),
            "net file patched": (
                ("class Net(nn.Module):", "nn.Linear.forward = None\n\n\nclass Net(nn.Module):"),
            ),
            "net file method new": (
                (
                    "    def forward(self, x):",
                    "    def train(self, mode=True):\n        return self\n\n    def forward(self, x):",
                ),
            ),
            "net file layer": (
                (
                    "        self.body = nn.Linear(4, 8)\n",
                    "        self.body = nn.Linear(4, 8)\n        self.body.half()\n",
                ),
            ),
            "net file layer added": (
                (
                    "        self.body = nn.Linear(4, 8)\n",
                    "        self.body = nn.Linear(4, 8)\n        self.drop = nn.Dropout(0.5)\n",
                ),
                ("self.body(x).relu()", "self.drop(self.body(x).relu())"),
            ),
            "net bases": (("class Net(nn.Module)", "class Net(nn.Sequential)"),),
            "runner base": (
                (
                    "class Runner:",
                    "class Base:\n    def __setattr__(self, n, v):\n        pass\n\n\nclass Runner(Base):",
                ),
            ),
        },
    ),
)
