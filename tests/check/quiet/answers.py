"""Functions and properties that tell whether Apex is on: they ask a flag still, not a constant."""

from __future__ import annotations

from check.trainings.planted import Training, files

_PROPERTY_BEFORE = """\
# file: train.py
import torch
import torch.nn.functional as F
try:
    from apex import amp
    APEX = True
except ImportError:
    APEX = False

class Runner:
    def __init__(self, fp16):
        self.fp16 = fp16
        self.net = torch.nn.Linear(4, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        if self.mixed:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")

    @property
    def mixed(self):
        if APEX:
            return self.fp16
        return False

    def lr(self):
        if self.mixed:
            return 0.1
        return 0.01

    def run(self, x, y):
        self.opt.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        if self.mixed:
            with amp.scale_loss(loss, self.opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        self.opt.param_groups[0]["lr"] = self.lr()
        self.opt.step()

Runner(True).run(torch.randn(6, 4), torch.randn(6, 3))
"""
_PROPERTY_AFTER = """\
# file: train.py
import torch
import torch.nn.functional as F

class Runner:
    def __init__(self, fp16):
        self.fp16 = fp16
        self.net = torch.nn.Linear(4, 3)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler(enabled=self.mixed)

    @property
    def mixed(self):
        return self.fp16
        return False

    def lr(self):
        if self.mixed:
            return 0.1
        return 0.01

    def run(self, x, y):
        self.opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=self.mixed):
            loss = F.mse_loss(self.net(x), y)
        self.scaler.scale(loss).backward()
        self.opt.param_groups[0]["lr"] = self.lr()
        self.scaler.step(self.opt)
        self.scaler.update()

Runner(True).run(torch.randn(6, 4), torch.randn(6, 3))
"""
_FUNCTION_BEFORE = """\
# file: support.py
try:
    from apex import amp
except ImportError:
    amp = None

def on(args):
    if amp is None:
        return False
    return args.fp16
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from support import amp, on

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    if on(args):
        net, opt = amp.initialize(net, opt, opt_level="O1")
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if on(args):
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()

main()
"""
_FUNCTION_AFTER = """\
# file: support.py
def on(args):
    return args.fp16
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from support import on

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fp16", action="store_true")
    args = parser.parse_args()
    net = torch.nn.Linear(4, 3)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=on(args))
    for x, y in [(torch.randn(6, 4), torch.randn(6, 3)) for _ in range(3)]:
        opt.zero_grad()
        with torch.cuda.amp.autocast(enabled=on(args)):
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()

main()
"""

ANSWERS = (
    Training(
        "a property asks a flag where Apex is there",
        files(_PROPERTY_BEFORE),
        files(_PROPERTY_AFTER),
        {
            "it is off in every run": (("        return self.fp16\n", ""),),
            "it is on in every run": (("return self.fp16", "return True"),),
            "it is turned round": (("return self.fp16", "return not self.fp16"),),
        },
        (("AMP101", "train.py", 19, 20),),
    ),
    Training(
        "a function of another file asks a flag",
        files(_FUNCTION_BEFORE),
        files(_FUNCTION_AFTER),
        {
            "it is on in every run": (("return args.fp16", "return True"),),
            "it is off in every run": (("return args.fp16", "return False"),),
            "it is turned round": (("return args.fp16", "return not args.fp16"),),
            "it is off where the flag is on": (
                (
                    "    return args.fp16",
                    "    if args.fp16:\n        return False\n    return args.fp16",
                ),
            ),
        },
        (("AMP101", "support.py", 7, 8),),
    ),
)
