"""A loss scale that was loaded, and a GradScaler that is made behind that: what was loaded is lost."""

from __future__ import annotations

from check.trainings.planted import Training, files

_SCRIPT_BEFORE = """\
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net, opt = amp.initialize(net, opt, opt_level="O1")
checkpoint = torch.load("last.pt")
net.load_state_dict(checkpoint["net"])
amp.load_state_dict(checkpoint["amp"])
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    with amp.scale_loss(loss, opt) as scaled:
        scaled.backward()
    opt.step()
torch.save({"net": net.state_dict(), "amp": amp.state_dict()}, "last.pt")
"""
_SCRIPT_AFTER = """\
# file: train.py
import torch
import torch.nn.functional as F

net = torch.nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()
checkpoint = torch.load("last.pt")
net.load_state_dict(checkpoint["net"])
scaler.load_state_dict(checkpoint["amp"])
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    opt.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.mse_loss(net(x), y)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
torch.save({"net": net.state_dict(), "amp": scaler.state_dict()}, "last.pt")
"""
_CLASS_BEFORE = """\
# file: trainer.py
import torch
from apex import amp

class Trainer:
    def __init__(self, net, opt):
        self.net, self.opt = amp.initialize(net, opt, opt_level="O1")

    def resume(self, path):
        state = torch.load(path)
        self.net.load_state_dict(state["net"])
        amp.load_state_dict(state["amp"])

    def fit(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            self.opt.step()

# file: main.py
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
trainer.resume("last.pt")
trainer.fit([(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""
_CLASS_AFTER = """\
# file: trainer.py
import torch

class Trainer:
    def __init__(self, net, opt):
        self.net, self.opt = net, opt
        self.scaler = torch.cuda.amp.GradScaler()

    def resume(self, path):
        state = torch.load(path)
        self.net.load_state_dict(state["net"])
        self.scaler.load_state_dict(state["amp"])

    def fit(self, loader):
        for x, y in loader:
            with torch.cuda.amp.autocast():
                loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()

# file: main.py
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1))
trainer.resume("last.pt")
trainer.fit([(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)])
"""

LOADED_SCALE = (
    Training(
        "a script resumes its loss scale",
        files(_SCRIPT_BEFORE),
        files(_SCRIPT_AFTER),
        {
            "another GradScaler takes the place of the one that was loaded": (
                (
                    'scaler.load_state_dict(checkpoint["amp"])\n',
                    'scaler.load_state_dict(checkpoint["amp"])\nscaler = torch.cuda.amp.GradScaler()\n',
                ),
            ),
            "another GradScaler scales": (
                (
                    'scaler.load_state_dict(checkpoint["amp"])\n',
                    'scaler.load_state_dict(checkpoint["amp"])\nfresh = torch.cuda.amp.GradScaler()\n',
                ),
                ("scaler.scale(loss)", "fresh.scale(loss)"),
                ("scaler.step", "fresh.step"),
                ("scaler.update", "fresh.update"),
            ),
            "each round makes a GradScaler": (
                (
                    "    opt.zero_grad()\n",
                    "    opt.zero_grad()\n    scaler = torch.cuda.amp.GradScaler()\n",
                ),
            ),
        },
    ),
    Training(
        "a trainer resumes its loss scale in a method",
        files(_CLASS_BEFORE),
        files(_CLASS_AFTER),
        {
            "the method that trains makes the GradScaler anew": (
                (
                    "    def fit(self, loader):\n",
                    "    def fit(self, loader):\n        self.scaler = torch.cuda.amp.GradScaler()\n",
                ),
            ),
            "the method that loads makes it anew": (
                (
                    'self.scaler.load_state_dict(state["amp"])',
                    'self.scaler.load_state_dict(state["amp"])\n        self.scaler = torch.cuda.amp.GradScaler()',
                ),
            ),
            "the program makes it anew": (
                (
                    'trainer.resume("last.pt")\n',
                    'trainer.resume("last.pt")\ntrainer.scaler = torch.cuda.amp.GradScaler()\n',
                ),
            ),
            "another GradScaler scales": (
                (
                    "        self.scaler = torch.cuda.amp.GradScaler()\n",
                    "        self.scaler = torch.cuda.amp.GradScaler()\n        self.second = torch.cuda.amp.GradScaler()\n",
                ),
                ("self.scaler.scale", "self.second.scale"),
                ("self.scaler.step", "self.second.step"),
                ("self.scaler.update", "self.second.update"),
            ),
        },
    ),
)
