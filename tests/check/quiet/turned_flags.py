"""Flags that are turned round, or halved, on their way to a GradScaler."""

from __future__ import annotations

from check.trainings.planted import Training, files

_SCRIPT_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.fp16:
        net, opt = amp.initialize(net, opt, opt_level="O1")
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_SCRIPT_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_CLASS_BEFORE = """\
# file: trainer.py
import torch
from apex import amp

class Trainer:
    def __init__(self, net, opt, fp16):
        self.net, self.opt = net, opt
        self.fp16 = fp16
        if self.fp16:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        if self.fp16:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(self.opt), 1.0)
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()

# file: main.py
import sys
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), "--fp16" in sys.argv)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    trainer.learn(x, y)
"""
_CLASS_AFTER = """\
# file: trainer.py
import torch

class Trainer:
    def __init__(self, net, opt, fp16):
        self.net, self.opt = net, opt
        self.fp16 = fp16
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)

    def learn(self, x, y):
        with torch.cuda.amp.autocast(enabled=self.fp16):
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()

# file: main.py
import sys
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), "--fp16" in sys.argv)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    trainer.learn(x, y)
"""
_PARAMETER_BEFORE = """\
# file: engine.py
import torch
from apex import amp

def setup(net, opt, mixed):
    if mixed:
        net, opt = amp.initialize(net, opt, opt_level="O1")
    return net, opt

def train(net, opt, loader, args):
    for x, y in loader:
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        if args.fp16:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()
# file: main.py
import argparse
import torch
from engine import setup, train

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt = setup(net, opt, args.fp16)
    train(net, opt, [(torch.randn(6, 4), torch.randn(6, 3))], args)

main()
"""
_PARAMETER_AFTER = """\
# file: engine.py
import torch

def setup(net, opt, mixed):
    scaler = torch.cuda.amp.GradScaler(enabled=mixed)
    return net, opt, scaler

def train(net, opt, loader, args, scaler):
    for x, y in loader:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16):
            loss = torch.nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
# file: main.py
import argparse
import torch
from engine import setup, train

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    net, opt, scaler = setup(net, opt, args.fp16)
    train(net, opt, [(torch.randn(6, 4), torch.randn(6, 3))], args, scaler)

main()
"""
_BOTH_BEFORE = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if args.fp16 and args.cuda:
        net, opt = amp.initialize(net, opt, opt_level="O1")
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if args.fp16 and args.cuda:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_BOTH_AFTER = """\
# file: train.py
import argparse
import torch
import torch.nn.functional as F

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.cuda)
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=args.fp16 and args.cuda):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""
_KEPT_BEFORE = """\
# file: trainer.py
import torch
from apex import amp

class Trainer:
    def __init__(self, net, opt, fp16):
        self.net, self.opt = net, opt
        self.fp16 = fp16
        self.cuda = torch.cuda.is_available()
        if self.fp16 and self.cuda:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        if self.fp16 and self.cuda:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(self.opt), 1.0)
        else:
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.opt.step()

# file: main.py
import sys
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), "--fp16" in sys.argv)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    trainer.learn(x, y)
"""
_KEPT_AFTER = """\
# file: trainer.py
import torch

class Trainer:
    def __init__(self, net, opt, fp16):
        self.net, self.opt = net, opt
        self.fp16 = fp16
        self.cuda = torch.cuda.is_available()
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16 and self.cuda)

    def learn(self, x, y):
        with torch.cuda.amp.autocast(enabled=self.fp16 and self.cuda):
            loss = torch.nn.functional.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()

# file: main.py
import sys
import torch
from trainer import Trainer

net = torch.nn.Linear(4, 3)
trainer = Trainer(net, torch.optim.SGD(net.parameters(), lr=0.1), "--fp16" in sys.argv)
for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
    trainer.learn(x, y)
"""

TURNED_FLAGS = (
    Training(
        "a flag of a script",
        files(_SCRIPT_BEFORE),
        files(_SCRIPT_AFTER),
        {
            "a variable holds the contrary": (
                (
                    "    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)\n",
                    "    use = not args.fp16\n    scaler = torch.cuda.amp.GradScaler(enabled=use)\n",
                ),
            ),
            "so does a variable of a variable": (
                (
                    "    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)\n",
                    "    off = not args.fp16\n    use = off\n    scaler = torch.cuda.amp.GradScaler(enabled=use)\n",
                ),
            ),
            "losses are scaled under the contrary": (
                (
                    "        scaler.scale(loss).backward()\n",
                    "        use = not args.fp16\n        if use:\n            scaler.scale(loss).backward()\n        else:\n            loss.backward()\n",
                ),
            ),
            "steps go through the GradScaler under the contrary": (
                (
                    "        scaler.step(opt)\n        scaler.update()\n",
                    "        use = not args.fp16\n        if use:\n            scaler.step(opt)\n            scaler.update()\n        else:\n            opt.step()\n",
                ),
            ),
            "casts go by the contrary": (
                (
                    "with torch.cuda.amp.autocast(enabled=args.fp16)",
                    "use = not args.fp16\n        with torch.cuda.amp.autocast(enabled=use)",
                ),
            ),
        },
    ),
    Training(
        "a flag that a constructor is given and keeps",
        files(_CLASS_BEFORE),
        files(_CLASS_AFTER),
        {
            "an attribute holds the contrary": (
                (
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)\n",
                    "        self.plain = not self.fp16\n        self.scaler = torch.cuda.amp.GradScaler(enabled=self.plain)\n",
                ),
            ),
            "what was given is turned round": (
                (
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)\n",
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=not fp16)\n",
                ),
            ),
            "a function that makes the GradScaler turns it round": (
                (
                    "class Trainer:",
                    "def made(use):\n    return torch.cuda.amp.GradScaler(enabled=not use)\n\nclass Trainer:",
                ),
                (
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)\n",
                    "        self.scaler = made(self.fp16)\n",
                ),
            ),
            "a function that makes the GradScaler is given the contrary": (
                (
                    "class Trainer:",
                    "def made(use):\n    return torch.cuda.amp.GradScaler(enabled=use)\n\nclass Trainer:",
                ),
                (
                    "        self.scaler = torch.cuda.amp.GradScaler(enabled=self.fp16)\n",
                    "        self.scaler = made(not self.fp16)\n",
                ),
            ),
        },
    ),
    Training(
        "a flag that a function is given",
        files(_PARAMETER_BEFORE),
        files(_PARAMETER_AFTER),
        {
            "the function turns it round": (
                ("GradScaler(enabled=mixed)", "GradScaler(enabled=not mixed)"),
            ),
            "its caller does": (("setup(net, opt, args.fp16)", "setup(net, opt, not args.fp16)"),),
            "so does an assignment in the call": (("enabled=mixed", "enabled=(off := not mixed)"),),
        },
    ),
    Training(
        "a flag of two parts",
        files(_BOTH_BEFORE),
        files(_BOTH_AFTER),
        {
            "the GradScaler goes by one part": (
                ("GradScaler(enabled=args.fp16 and args.cuda)", "GradScaler(enabled=args.fp16)"),
            ),
            "so does a variable": (
                (
                    "    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16 and args.cuda)",
                    "    use = args.fp16\n    scaler = torch.cuda.amp.GradScaler(enabled=use)",
                ),
            ),
            "casts go by one part": (
                ("autocast(enabled=args.fp16 and args.cuda)", "autocast(enabled=args.fp16)"),
            ),
            "one part is enough": (
                (
                    "GradScaler(enabled=args.fp16 and args.cuda)",
                    "GradScaler(enabled=args.fp16 or args.cuda)",
                ),
            ),
        },
    ),
    Training(
        "a flag of two parts that a constructor keeps",
        files(_KEPT_BEFORE),
        files(_KEPT_AFTER),
        {
            "the GradScaler goes by one part as it was given": (
                ("GradScaler(enabled=self.fp16 and self.cuda)", "GradScaler(enabled=fp16)"),
            ),
            "the GradScaler goes by one part": (
                ("GradScaler(enabled=self.fp16 and self.cuda)", "GradScaler(enabled=self.fp16)"),
            ),
        },
    ),
)
