"""Objects that run a network: what a library makes of it, and those that initialize Apex as they are made."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """import torch
import torch.nn as nn
from apex import amp
from contrast import Learner

def main(batches):
    net = nn.Linear(4, 2)
    learner = Learner(net, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in batches:
        learner(x, keep=True)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_AFTER = """import torch
import torch.nn as nn
from contrast import Learner

def main(batches):
    net = nn.Linear(4, 2)
    learner = Learner(net, 32)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        with torch.cuda.amp.autocast():
            learner(x, keep=True)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

main([])
"""
_UNWRAPPED = """import torch
import torch.nn as nn
from accelerate import Accelerator
from apex import amp

def main(batches, held):
    accelerator = Accelerator()
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    for x in held:
        print(accelerator.unwrap_model(net)(x))

main([], [])
"""
_UNWRAPPED_AFTER = """import torch
import torch.nn as nn
from accelerate import Accelerator

def main(batches, held):
    accelerator = Accelerator()
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    for x in held:
        with torch.cuda.amp.autocast():
            print(accelerator.unwrap_model(net)(x))

main([], [])
"""
_CAST = "        with torch.cuda.amp.autocast():\n            learner(x, keep=True)"

_CHOSEN_BEFORE = """import sys
import torch
from apex import amp

class Runner:
    def __init__(self, model):
        self.model = model
        self.fast = False
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.probe(torch.randn(2, 4))

    def probe(self, x):
        return self.model(x)

    def run(self, loader):
        for x in loader:
            with torch.cuda.amp.autocast(enabled=self.fast):
                loss = self.model(x).mean()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

class HalfRunner(Runner):
    def __init__(self, model):
        super().__init__(model)
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")

    def probe(self, x):
        return self.model(x) * 2

    def run(self, loader):
        for x in loader:
            loss = self.model(x).sum()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()

if "--half" in sys.argv:
    runner = HalfRunner(torch.nn.Linear(4, 1))
else:
    runner = Runner(torch.nn.Linear(4, 1))
runner.run([torch.randn(2, 4)])
"""
_CHOSEN_AFTER = (
    _CHOSEN_BEFORE.replace("from apex import amp\n", "")
    .replace(
        'self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")',
        "self.scaler = torch.cuda.amp.GradScaler()",
    )
    .replace(
        "            loss = self.model(x).sum()\n",
        "            with torch.cuda.amp.autocast():\n                loss = self.model(x).sum()\n",
    )
    .replace(
        """            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            self.optimizer.step()
""",
        """            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
""",
    )
)
_CHOSEN = Training(
    "one of two classes, whose objects initialize as they are made",
    {"run.py": _CHOSEN_BEFORE},
    {"run.py": _CHOSEN_AFTER},
    {
        "what runs while the object is made is cast": (
            (
                "        return self.model(x) * 2",
                "        with torch.cuda.amp.autocast():\n            return self.model(x) * 2",
            ),
        ),
        "its own forward is not cast": (
            (
                "            with torch.cuda.amp.autocast():\n                loss",
                "            if True:\n                loss",
            ),
        ),
    },
)

_SOME_WRAPPED = """# file: run.py
import argparse
import torch
from trainer import Trainer

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
parser.add_argument("--parallel", action="store_true")
parser.add_argument("--trainer", default="plain")
args = parser.parse_args()
if args.trainer == "plain":
    trainer = Trainer(args.half)
if args.parallel:
    trainer = torch.nn.DataParallel(trainer)
for _ in range(9):
FORWARD
    trainer.module.update(out) if args.parallel else trainer.update(out)
# file: trainer.py
import torch
IMPORT
class Trainer(torch.nn.Module):
    def __init__(self, half):
        super().__init__()
        self.half = half
        self.net = torch.nn.Linear(4, 4)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
INITIALIZE

    def forward(self, x):
        return self.net(x)

    def update(self, out):
        loss = out.float().abs().mean()
        self.opt.zero_grad()
BACKWARD
"""
_SCALER = 'getattr(trainer, "module", trainer).scaler'
_PARTS = (
    ("IMPORT", "from apex import amp", ""),
    (
        "INITIALIZE",
        """        if self.half:
            self.net, self.opt = amp.initialize(self.net, self.opt, opt_level="O1")""",
        """        self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)""",
    ),
    (
        "FORWARD",
        """    out = trainer.forward(torch.randn(8, 4))""",
        f"""    with torch.cuda.amp.autocast(enabled={_SCALER}.is_enabled()):
        out = trainer.forward(torch.randn(8, 4))""",
    ),
    (
        "BACKWARD",
        """        if self.half:
            with amp.scale_loss(loss, self.opt) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        self.opt.step()""",
        """        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()""",
    ),
)


def _some_wrapped(which: int) -> dict[str, str]:
    text = _SOME_WRAPPED
    for part in _PARTS:
        text = text.replace(part[0], part[which])
    return files(text)


HOLDERS = (
    Training(
        "some runs put a wrapper around what trains, and one test makes it",
        _some_wrapped(1),
        _some_wrapped(2),
        {
            "read through a wrapper that is not there": ((_SCALER, "trainer.module.scaler"),),
            "cast in runs that leave AMP off": ((f"{_SCALER}.is_enabled()", "True"),),
            "cast in runs with a wrapper alone": ((f"{_SCALER}.is_enabled()", "args.parallel"),),
        },
    ),
    Training(
        "what a library makes of the network is called",
        {"main.py": _BEFORE},
        {"main.py": _AFTER},
        {"it is called without casts": ((_CAST, "        learner(x, keep=True)"),)},
    ),
    Training(
        "what a library unwraps is called",
        {"main.py": _UNWRAPPED},
        {"main.py": _UNWRAPPED_AFTER},
        {
            "it is called without casts": (
                (
                    "        with torch.cuda.amp.autocast():\n            print(",
                    "        print(",
                ),
            ),
        },
    ),
    _CHOSEN,
)
