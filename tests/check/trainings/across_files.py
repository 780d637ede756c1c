"""Trainings set up by the import of a file: what that turned on holds for whoever imports it, and for nobody else."""

from __future__ import annotations

from check.trainings.planted import Training

_SETUP = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
"""
_INITIALIZE = """from apex import amp
net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
"""
_SCALER = "scaler = torch.cuda.amp.GradScaler()\n"
_BEFORE = """import torch.nn.functional as F
from apex import amp
IMPORT

def update(inputs, labels):
    @optimizer.zero_grad()
    loss = F.cross_entropy(@net(inputs), labels)
    with amp.scale_loss(loss, @optimizer) as scaled_loss:
        scaled_loss.backward()
    @optimizer.step()

def score(net, inputs):
    return net(inputs).argmax(1)

def main(loader):
    for inputs, labels in loader:
        update(inputs, labels)
        print(score(@net, inputs))

if __name__ == "__main__":
    main([])
"""
_AFTER = """import torch
import torch.nn.functional as F
IMPORT

def update(inputs, labels):
    @optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = F.cross_entropy(@net(inputs), labels)
    @scaler.scale(loss).backward()
    @scaler.step(@optimizer)
    @scaler.update()

def score(net, inputs):
    with torch.cuda.amp.autocast():
        return net(inputs).argmax(1)

def main(loader):
    for inputs, labels in loader:
        update(inputs, labels)
        print(score(@net, inputs))

if __name__ == "__main__":
    main([])
"""
_CAST = "with torch.cuda.amp.autocast():"
_FAULTS = {
    "the training is not cast": ((f"    {_CAST}\n        loss", "    if True:\n        loss"),),
    "the evaluation is not cast": (
        (f"    {_CAST}\n        return", "    if True:\n        return"),
    ),
    "the scaler is off": (("GradScaler()", "GradScaler(enabled=False)"),),
    "the scale is never updated": (("    @scaler.update()\n", ""),),
}


def _imported(name: str, before: str, after: str, prefix: str) -> Training:
    """Return a training whose network and optimizer another file makes; `prefix` stands before their names."""
    was = _BEFORE.replace("IMPORT", before).replace("@", prefix)
    new = _AFTER.replace("IMPORT", after).replace("@", prefix)
    return Training(
        name,
        {"setup.py": _SETUP + _INITIALIZE, "train.py": was},
        {"setup.py": _SETUP + _SCALER, "train.py": new},
        {
            fault: tuple((old.replace("@", prefix), text) for old, text in edits)
            for fault, edits in _FAULTS.items()
        },
    )


_HELD = """import torch
from torch import nn
APEX
model = None
optimizer = None

def begin():
    global model, optimizerSCALER
    model = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    MADE

def current():
    return model, optimizer
"""
_DRIVEN_BEFORE = """import torch.nn.functional as F
from apex import amp
from held import begin, current

def main(loader):
    begin()
    model, optimizer = current()
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs), labels)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

main([])
"""
_DRIVEN_AFTER = """import torch
import torch.nn.functional as F
import held
from held import begin, current

def main(loader):
    begin()
    model, optimizer = current()
    for inputs, labels in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(model(inputs), labels)
        held.scaler.scale(loss).backward()
        held.scaler.step(optimizer)
        held.scaler.update()

main([])
"""


def _made(apex: str, scaler: str, made: str) -> str:
    return _HELD.replace("APEX\n", apex).replace("SCALER", scaler).replace("MADE", made)


_REBOUND = Training(
    "set up by a function that rebinds globals",
    {
        "held.py": _made(
            "from apex import amp\n",
            "",
            'model, optimizer = amp.initialize(model, optimizer, opt_level="O1")',
        ),
        "train.py": _DRIVEN_BEFORE,
    },
    {
        "held.py": _made(
            "scaler = torch.cuda.amp.GradScaler(enabled=False)\n",
            ", scaler",
            "scaler = torch.cuda.amp.GradScaler()",
        ),
        "train.py": _DRIVEN_AFTER,
    },
    {
        "the scaler of the import is off": (
            ("import held\nfrom held import begin", "from held import scaler, begin"),
            ("held.scaler", "scaler"),
        ),
        "the scaler that is made is none of the file": (
            (", optimizer, scaler\n", ", optimizer\n"),
        ),
    },
)
_PROGRAM_BEFORE = (
    _SETUP
    + """from apex import amp
import torch.nn.functional as F

def score(network, inputs):
    return network(inputs).argmax(1)

def main(net, optimizer, loader):
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(inputs), labels)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

if __name__ == "__main__":
    main(net, optimizer, [])
"""
)
_PROGRAM_AFTER = (
    _SETUP
    + """import torch.nn.functional as F

def score(network, inputs):
    return network(inputs).argmax(1)

def main(net, optimizer, loader):
    scaler = torch.cuda.amp.GradScaler()
    for inputs, labels in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(net(inputs), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

if __name__ == "__main__":
    main(net, optimizer, [])
"""
)
_TEST = "from torch import nn\nfrom train import score\n\nprint(score(nn.Linear(6, 3), []))\n"
_GUARD = Training(
    "imported for its helpers alone",
    {"train.py": _PROGRAM_BEFORE, "test.py": _TEST},
    {"train.py": _PROGRAM_AFTER, "test.py": _TEST},
    {
        "the helper is cast where nothing initialized": (
            (
                "    return network(inputs)",
                f"    {_CAST}\n        return network(inputs)",
            ),
        )
    },
)

_RUN = """import torch
from setup import net
from train import main

main([])
with torch.no_grad():
    print(net(torch.randn(2, 6)))
"""
_CAST_RUN = _RUN.replace("    print(net", f"    {_CAST}\n        print(net")
_SET_UP = _imported(
    "set up by an import",
    "from setup import net, optimizer",
    "from setup import net, optimizer, scaler",
    "",
)
_BESIDE = Training(
    "evaluated in a file without Apex",
    {**_SET_UP.before, "run.py": _RUN},
    {**_SET_UP.after, "run.py": _CAST_RUN},
    {"the file stays as it is": ((_CAST_RUN, _RUN),)},
)

_SAVER = """class Saver:
    def checkpoint(self, network, step):
        self.kept = network.state_dict(), step
"""
_SAVED = """from setup import net
from saver import Saver
from train import main

class Run:
    def __init__(self, saver):
        self.saver = saver

    def go(self):
        main([])
        self.saver.checkpoint(net, 3)

Run(Saver()).go()
"""
_SAVING = Training(
    "a method that saves is no checkpoint of torch",
    {**_SET_UP.before, "run.py": _SAVED, "saver.py": _SAVER},
    {**_SET_UP.after, "run.py": _SAVED, "saver.py": _SAVER},
    {},
)
_SAVED_OUT_OF_SIGHT = Training(
    "a method out of sight that saves is no checkpoint of torch",
    {**_SET_UP.before, "run.py": _SAVED.replace("from saver", "from elsewhere")},
    {**_SET_UP.after, "run.py": _SAVED.replace("from saver", "from elsewhere")},
    {},
)

ACROSS_FILES = (
    _SAVING,
    _SAVED_OUT_OF_SIGHT,
    _BESIDE,
    _SET_UP,
    _imported("set up by an import of the module", "import setup as s", "import setup as s", "s."),
    _REBOUND,
    _GUARD,
)
