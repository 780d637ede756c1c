"""What a backward is asked for, and the blocks, hooks and modes that its gradients depend on."""

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

_PHASES_BEFORE = """
# file: net.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())
# file: main.py
import torch
from apex import amp
from net import Net


def guard(model):
    for p in model.body.parameters():
        p.register_hook(lambda g: g.mul(2))


def phase(model, x, train, opt):
    with torch.set_grad_enabled(train):
        out = model(x).mean()
    if train:
        opt.zero_grad()
        with amp.scale_loss(out, opt) as s:
            s.backward()
        opt.step()
    return out.item()


def main():
    model = Net()
    guard(model)
    opt = torch.optim.Adam(model.parameters())
    model, opt = amp.initialize(model, opt, opt_level="O1")
    for i in range(3):
        phase(model, torch.randn(2, 4), True, opt)
        phase(model, torch.randn(2, 4), False, opt)


main()
"""

_PHASES_AFTER = """
# file: net.py
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())
# file: main.py
import torch
from net import Net


def guard(model):
    for p in model.body.parameters():
        p.register_hook(lambda g: g.mul(2))


def phase(model, x, train, opt, scaler):
    with torch.set_grad_enabled(train), torch.cuda.amp.autocast():
        out = model(x).mean()
    if train:
        opt.zero_grad()
        scaler.scale(out).backward()
        scaler.step(opt)
        scaler.update()
    return out.item()


def main():
    model = Net()
    guard(model)
    opt = torch.optim.Adam(model.parameters())
    scaler = torch.cuda.amp.GradScaler()
    for i in range(3):
        phase(model, torch.randn(2, 4), True, opt, scaler)
        phase(model, torch.randn(2, 4), False, opt, scaler)


main()
"""

BACKWARDS = (
    Training(
        "two losses of one graph",
        files(_DDP_BEFORE),
        files(_DDP_AFTER),
        {
            "retain lost": (
                (
                    "            scaler.scale(loss).backward(retain_graph=True)\n",
                    "            scaler.scale(loss).backward()\n",
                ),
            ),
            "retain False": (
                (
                    "            scaler.scale(loss).backward(retain_graph=True)\n",
                    "            scaler.scale(loss).backward(retain_graph=False)\n",
                ),
            ),
            "retain added": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            scaler.scale(aux).backward(retain_graph=True)\n",
                ),
            ),
            "create_graph added": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            scaler.scale(aux).backward(create_graph=True)\n",
                ),
            ),
            "gradient given": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            scaler.scale(aux).backward(torch.tensor(2.0))\n",
                ),
            ),
            "inputs given": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            scaler.scale(aux).backward(inputs=[head.weight])\n",
                ),
            ),
            "no_sync 1": (
                (
                    "            scaler.scale(loss).backward(retain_graph=True)\n",
                    "            with model.no_sync():\n                scaler.scale(loss).backward(retain_graph=True)\n",
                ),
            ),
            "no_sync 2": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            with model.no_sync():\n                scaler.scale(aux).backward()\n",
                ),
            ),
            "no_sync beside": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.cuda.amp.autocast(), model.no_sync():\n",
                ),
            ),
            "hook added": (
                (
                    "    head.weight.register_hook(lambda g: g * 0.5)\n",
                    "    head.weight.register_hook(lambda g: g * 0.5)\n    model.module.weight.register_hook(lambda g: g * 0.1)\n",
                ),
            ),
            "hook added loop": (
                (
                    "    head.weight.register_hook(lambda g: g * 0.5)\n",
                    "    head.weight.register_hook(lambda g: g * 0.5)\n    for p in head.parameters():\n        p.register_hook(lambda g: g * 0.1)\n",
                ),
            ),
            "hook on tensor": (
                (
                    "            opt.zero_grad()\n",
                    "            feats.register_hook(lambda g: g * 0.1)\n            opt.zero_grad()\n",
                ),
            ),
            "no_grad beside": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.cuda.amp.autocast(), torch.no_grad():\n",
                ),
            ),
            "no_grad outer": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.no_grad(), torch.cuda.amp.autocast():\n",
                ),
            ),
            "set_grad False beside": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.set_grad_enabled(False), torch.cuda.amp.autocast():\n",
                ),
            ),
            "set_grad flag beside": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.set_grad_enabled(args.deep), torch.cuda.amp.autocast():\n",
                ),
            ),
            "inference beside": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            with torch.inference_mode(), torch.cuda.amp.autocast():\n",
                ),
            ),
            "set_grad statement": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            torch.set_grad_enabled(False)\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "no_grad around aux": (
                (
                    "                aux = feats.square().mean()\n",
                    "                with torch.no_grad():\n                    aux = feats.square().mean()\n",
                ),
            ),
            "no_grad around loss": (
                (
                    "                loss = F.mse_loss(head(feats), y)\n",
                    "                with torch.no_grad():\n                    loss = F.mse_loss(head(feats), y)\n",
                ),
            ),
            "decorated": (("def train(", "@torch.no_grad()\ndef train("),),
            "finally lost": (
                (
                    "        finally:\n            model.train()\n",
                    "        except ValueError:\n            raise\n",
                ),
            ),
            "half added": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    head.half()\n"),
            ),
            "half assigned": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    head = head.half()\n"),
            ),
            "requires_grad False": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    head.requires_grad_(False)\n",
                ),
            ),
            "freeze loop": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    for p in head.parameters():\n        p.requires_grad = False\n",
                ),
            ),
            "eval added": (
                ("    model = DDP(model)\n", "    model = DDP(model)\n    model.eval()\n"),
            ),
            "lr changed": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    opt.param_groups[0]['lr'] *= 2\n",
                ),
            ),
            "loss reassigned": (
                (
                    "            scaler.scale(aux).backward()\n",
                    "            aux = aux * 0.5\n            scaler.scale(aux).backward()\n",
                ),
            ),
            "anomaly": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            torch.autograd.set_detect_anomaly(True)\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "x half": (
                (
                    "            with torch.cuda.amp.autocast():\n",
                    "            x = x.half()\n            with torch.cuda.amp.autocast():\n",
                ),
            ),
            "default dtype": (
                (
                    "    model = DDP(model)\n",
                    "    model = DDP(model)\n    torch.set_default_dtype(torch.float16)\n",
                ),
            ),
        },
    ),
    Training(
        "phases with and without gradients",
        files(_PHASES_BEFORE),
        files(_PHASES_AFTER),
        {
            "set_grad gone": (("torch.set_grad_enabled(train), ", ""),),
            "set_grad True": (
                ("torch.set_grad_enabled(train), ", "torch.set_grad_enabled(True), "),
            ),
            "no_grad instead": (("torch.set_grad_enabled(train), ", "torch.no_grad(), "),),
            "head half in forward": (
                (
                    "        return self.head(self.body(x).relu())",
                    "        self.head.half()\n        return self.head(self.body(x).relu())",
                ),
            ),
            "forward no_grad": (("    def forward", "    @torch.no_grad()\n    def forward"),),
            "forward dropout": (
                (
                    "        return self.head(",
                    "        x = torch.dropout(x, 0.5, True)\n        return self.head(",
                ),
            ),
        },
    ),
)
