"""Programs that call what initializes where their own flags say so, with the flag of one of them forgotten."""

from __future__ import annotations

from check.trainings.planted import Training

_HELPER_BEFORE = """from apex import amp

def half(model, optimizer):
    return amp.initialize(model, optimizer, opt_level="O1")
"""
_HELPER_AFTER = """import torch

scaler = torch.cuda.amp.GradScaler(enabled=False)

def half(model, optimizer):
    global scaler
    scaler = torch.cuda.amp.GradScaler()
    return model, optimizer
"""
_PROGRAM_BEFORE = """import torch
import torch.nn.functional as F
from apex import amp
from precision import half

def main(args, loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.FLAG:
        model, optimizer = half(model, optimizer)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if args.FLAG:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
"""
_PROGRAM_AFTER = """import torch
import torch.nn.functional as F
import precision
from precision import half

def main(args, loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.FLAG:
        model, optimizer = half(model, optimizer)
    for x, y in loader:
        with torch.cuda.amp.autocast(enabled=args.FLAG):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        precision.scaler.scale(loss).backward()
        precision.scaler.step(optimizer)
        precision.scaler.update()
"""


def _files(helper: str, program: str) -> dict[str, str]:
    flags = {"spans.py": "fp16", "labels.py": "mixed"}
    return {"precision.py": helper} | {n: program.replace("FLAG", f) for n, f in flags.items()}


_WAYS = """from apex import amp

def begin(model, optimizer):
    return amp.initialize(model, optimizer, opt_level="O1")

def begin_exact(model, optimizer):
    return amp.initialize(model, optimizer, opt_level="O1", enabled=False)
"""
_FAST = """import torch
from apex import amp
from data import batches, net
from ways import begin

def main(net, batches):
    net, optimizer = begin(net, torch.optim.SGD(net.parameters(), lr=0.1))
    for x in batches:
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main(net, batches)
"""
_FAST_NOW = """import torch
from data import batches, net

def main(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = net(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

main(net, batches)
"""
_EXACT = _FAST.replace("begin", "begin_exact")
_EXACT_NOW = (
    _FAST_NOW.replace("GradScaler()", "GradScaler(enabled=False)")
    .replace("        with torch.cuda.amp.autocast():\n", "")
    .replace("            loss", "        loss")
)
_LOSS = "        loss = net(x).pow(2).mean()\n"
_CAST = f"        with torch.cuda.amp.autocast():\n    {_LOSS}"

_KINDS = """import sys
import torch
{imported}
class Job:
    def __init__(self, net, half):
        self.net, self.half = net, half

    def begin(self):
        pass

class Fit(Job):
    def begin(self):
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        {begun}

    def run(self, batches):
        for x in batches:
            self.optimizer.zero_grad()
            {loss}
            {step}

class Predict(Job):
    def run(self, batches):
        for x in batches:
            with torch.no_grad():
                print(self.net(x).sum())

def main(net, batches):
    made = {{"fit": Fit, "predict": Predict}}
    job = made[sys.argv[1]](net, "--half" in sys.argv)
    job.begin()
    job.run(batches)

main(torch.nn.Linear(4, 2), [])
"""
_STEP = """if self.half:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()"""
_STEP_NOW = """self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()"""
_KINDS_BEFORE = _KINDS.format(
    imported="from apex import amp\n",
    begun="""if self.half:
            self.net, self.optimizer = amp.initialize(self.net, self.optimizer)""",
    loss="loss = self.net(x).mean()",
    step=_STEP,
)
_KINDS_AFTER = _KINDS.format(
    imported="",
    begun="self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)",
    loss="""with torch.cuda.amp.autocast(enabled=self.half):
                loss = self.net(x).mean()""",
    step=_STEP_NOW,
)
_BARE = "            with torch.no_grad():\n"

GUARDED_CALLS = (
    Training(
        "an object of one of two classes, of which one initializes",
        {"main.py": _KINDS_BEFORE},
        {"main.py": _KINDS_AFTER},
        {
            "the other one casts under its flag": (
                (_BARE, _BARE.replace("():", "(), torch.cuda.amp.autocast(enabled=self.half):")),
            ),
            "the other one casts": (
                (_BARE, _BARE.replace("():", "(), torch.cuda.amp.autocast():")),
            ),
        },
    ),
    Training(
        "two programs that initialize under flags of their own",
        _files(_HELPER_BEFORE, _PROGRAM_BEFORE),
        _files(_HELPER_AFTER, _PROGRAM_AFTER),
        {
            "one casts without its flag": (("autocast(enabled=args.mixed)", "autocast()"),),
            "both cast without their flags": (
                ("autocast(enabled=args.fp16)", "autocast()"),
                ("autocast(enabled=args.mixed)", "autocast()"),
            ),
        },
    ),
    Training(
        "one of several programs that initialize in full precision",
        {"ways.py": _WAYS, "fast.py": _FAST, "exact.py": _EXACT},
        {"ways.py": "", "fast.py": _FAST_NOW, "exact.py": _EXACT_NOW},
        {
            "it is cast": ((f"\n{_LOSS}", f"\n{_CAST}"),),
            "its scaler is on": (("GradScaler(enabled=False)", "GradScaler()"),),
        },
    ),
)
