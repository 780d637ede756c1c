"""Flags that something else than the class of the trainer sets while AMP is on: it is the same object all the same."""

from __future__ import annotations

from check.trainings.planted import Training, files

_TRAINER = """BASES
class Trainer(OWN):
    def __init__(self, half):
        self.half = half
        self.model = torch.nn.Linear(7, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        INIT

    def train(self, batches):
        for inputs, labels in batches:
            self.optimizer.zero_grad()
            STEP

    def evaluate(self, inputs):
        with torch.no_grad()EVALUATED:
            return self.model(inputs)

"""
_BEFORE = {
    "INIT": """if self.half:
            self.model, self.optimizer = amp.initialize(
                self.model, self.optimizer, opt_level="O1"
            )""",
    "STEP": """loss = F.cross_entropy(self.model(inputs), labels)
            if self.half:
                with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                    scaled_loss.backward()
            else:
                loss.backward()
            self.optimizer.step()""",
    "EVALUATED": "",
}
_ASKED = ", torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())"
_AFTER = {
    "INIT": "self.scaler = torch.cuda.amp.GradScaler(enabled=self.half)",
    "STEP": """with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):
                loss = F.cross_entropy(self.model(inputs), labels)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()""",
    "EVALUATED": _ASKED,
}
_RUN = """def main(batches):
    trainer = Trainer(True)
    trainer.train(batches)
    DONE
    print(trainer.evaluate(batches[0][0]))

"""


def _training(name: str, done: str, own: str = "", bases: str = "", other: str = "") -> Training:
    def filled(parts: dict[str, str], imports: str) -> dict[str, str]:
        text = f"import torch\nimport torch.nn.functional as F\n{imports}{_TRAINER}{_RUN}"
        for mark, part in {**parts, "OWN": own, "BASES": bases, "DONE": done}.items():
            text = text.replace(mark, part)
        return {"train.py": text} | ({"other.py": other} if other else {})

    before = filled(_BEFORE, "from apex import amp\n")
    fault = ((_ASKED, ", torch.cuda.amp.autocast(enabled=self.half)"),)
    return Training(name, before, filled(_AFTER, ""), {"the evaluation asks the flag": fault})


_OFF = "    def done(self):\n        self.half = False\n"
TURNED_OFF = (
    _training("by a base class", "trainer.done()", "Base", f"class Base:\n{_OFF}\n"),
    _training("by a mixin of another file", "trainer.done()", "Mixin", "from other import Mixin", f"class Mixin:\n{_OFF}"),
    _training("by a base class of a base class", "trainer.done()", "Base", f"class Far:\n{_OFF}\nclass Base(Far):\n    pass\n"),
    _training("by what runs it", "trainer.half = False"),
    _training("by a function", "off(trainer)", bases="def off(running):\n    running.half = False\n"),
    _training("by another object", "Hook(trainer).done()", bases="class Hook:\n    def __init__(self, whose):\n        self.whose = whose\n\n    def done(self):\n        self.whose.half = False\n"),
)  # fmt: skip

_PHASES_BEFORE = """
# file: train.py
import torch
from apex import amp
from torch import nn


class Phase:
    def __init__(self, name, steps, noise):
        self.name, self.steps, self.noise = name, steps, noise


PHASES = [Phase("adam", 10, 0.0), Phase("sgd", 8, 0.1), Phase("sgd", 6, 0.3)]


def build_optimizer(name, net):
    if name == "adam":
        return torch.optim.Adam(net.parameters(), 1e-3)
    return torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9)


def fit(net, x, y):
    loss_fn = nn.SmoothL1Loss()
    optimizer = None
    for number, phase in enumerate(PHASES):
        if optimizer is None:
            optimizer = build_optimizer(phase.name, net)
            net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        elif PHASES[number - 1].name != phase.name:
            optimizer = build_optimizer(phase.name, net)
            net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
        for step in range(phase.steps):
            noisy = x + phase.noise * torch.randn_like(x)
            loss = loss_fn(net(noisy), y)
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
    return net


torch.manual_seed(0)
x = torch.randn(32, 5)
net = fit(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)), x, x.prod(1, keepdim=True))
print(sum(p.double().sum().item() for p in net.parameters()))
"""
_PHASES_AFTER = """
# file: train.py
import torch
from torch import nn


class Phase:
    def __init__(self, name, steps, noise):
        self.name, self.steps, self.noise = name, steps, noise


PHASES = [Phase("adam", 10, 0.0), Phase("sgd", 8, 0.1), Phase("sgd", 6, 0.3)]


def build_optimizer(name, net):
    if name == "adam":
        return torch.optim.Adam(net.parameters(), 1e-3)
    return torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9)


def fit(net, x, y):
    loss_fn = nn.SmoothL1Loss()
    optimizer = None
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for number, phase in enumerate(PHASES):
        if optimizer is None:
            optimizer = build_optimizer(phase.name, net)
            scaler = torch.cuda.amp.GradScaler()
        elif PHASES[number - 1].name != phase.name:
            optimizer = build_optimizer(phase.name, net)
            scaler = torch.cuda.amp.GradScaler()
        for step in range(phase.steps):
            noisy = x + phase.noise * torch.randn_like(x)
            with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
                loss = loss_fn(net(noisy), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    return net


torch.manual_seed(0)
x = torch.randn(32, 5)
net = fit(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)), x, x.prod(1, keepdim=True))
print(sum(p.double().sum().item() for p in net.parameters()))
"""
_STAGES_BEFORE = """
# file: train.py
import torch
from apex import amp
from torch import nn

NET = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))


def fresh(kind):
    return torch.optim.Adam(NET.parameters(), 1e-3) if kind == "adam" else torch.optim.SGD(NET.parameters(), 1e-2)


def stage(number, x, y, optimizer=None):
    if optimizer is None:
        optimizer = fresh("adam")
        _, optimizer = amp.initialize(NET, optimizer, opt_level="O1")
    elif number == 2:
        optimizer = fresh("sgd")
        _, optimizer = amp.initialize(NET, optimizer, opt_level="O1")
    for _ in range(6):
        loss = nn.functional.smooth_l1_loss(NET(x + 0.1 * torch.randn_like(x)), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
    return optimizer


torch.manual_seed(0)
x = torch.randn(32, 5)
opt = None
for n in range(4):
    opt = stage(n, x, x.prod(1, keepdim=True), opt)
print(sum(p.double().sum().item() for p in NET.parameters()))
"""
_STAGES_AFTER = """
# file: train.py
import torch
from torch import nn

scaler = torch.cuda.amp.GradScaler(enabled=False)
NET = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))


def fresh(kind):
    return torch.optim.Adam(NET.parameters(), 1e-3) if kind == "adam" else torch.optim.SGD(NET.parameters(), 1e-2)


def stage(number, x, y, optimizer=None):
    global scaler
    if optimizer is None:
        optimizer = fresh("adam")
        scaler = torch.cuda.amp.GradScaler()
    elif number == 2:
        optimizer = fresh("sgd")
        scaler = torch.cuda.amp.GradScaler()
    for _ in range(6):
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = nn.functional.smooth_l1_loss(NET(x + 0.1 * torch.randn_like(x)), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return optimizer


torch.manual_seed(0)
x = torch.randn(32, 5)
opt = None
for n in range(4):
    opt = stage(n, x, x.prod(1, keepdim=True), opt)
print(sum(p.double().sum().item() for p in NET.parameters()))
"""
_OFF = "torch.cuda.amp.GradScaler(enabled=False)"
TURNED_OFF = (
    *TURNED_OFF,
    Training(
        "phases of which some initialize anew",
        files(_PHASES_BEFORE),
        files(_PHASES_AFTER),
        {
            "off in a phase that goes on": (
                (f"    scaler = {_OFF}\n", ""),
                ("PHASES):\n", f"PHASES):\n        scaler = {_OFF}\n"),
            ),
        },
    ),
    Training(
        "stages that may begin anew",
        files(_STAGES_BEFORE),
        files(_STAGES_AFTER),
        {
            "off in a stage that goes on": (
                (f"scaler = {_OFF}\n", ""),
                ("    global scaler\n", f"    scaler = {_OFF}\n"),
            ),
            "off for all": (("    global scaler\n", f"    global scaler\n    scaler = {_OFF}\n"),),
        },
    ),
)
