"""Flags of autocast blocks that stand in another file or class than what initialized Apex by them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_Edits = tuple[tuple[str, str], ...]

_KEPT = """
# file: main.py
import yaml
import torch
from apex import amp

from net import Net
from trainer import Trainer


class Config:
    def __init__(self, path):
        with open(path) as f:
            values = yaml.safe_load(f)
        self.half = values["half"]
        self.profile = values["profile"]
        self.quick = values["quick"]


def main():
    config = Config("run.yaml")
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    if config.half and not config.profile:
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    Trainer(config, net, optimizer).fit([])


main()
# file: net.py
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())
# file: trainer.py
import torch
from apex import amp


class Trainer:
    def __init__(self, config, net, optimizer):
        self.config = config
        self.net = net
        self.optimizer = optimizer
        self.criterion = torch.nn.CrossEntropyLoss()

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(x), y)
            if self.config.half and not self.config.profile:
                with amp.scale_loss(loss, self.optimizer) as scaled:
                    scaled.backward()
                torch.nn.utils.clip_grad_norm_(amp.master_params(self.optimizer), 1.0)
            else:
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.optimizer.step()
"""
_KEPT_EDITS = (
    ("import yaml\nimport torch\nfrom apex import amp\n", "import yaml\nimport torch\n"),
    (
        '    if config.half and not config.profile:\n        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")\n    Trainer(config, net, optimizer).fit([])\n',
        "    scaler = torch.cuda.amp.GradScaler(enabled=config.half and not config.profile)\n    Trainer(config, net, optimizer, scaler).fit([])\n",
    ),
    (
        "# file: trainer.py\nimport torch\nfrom apex import amp\n",
        "# file: trainer.py\nimport torch\n",
    ),
    (
        "    def __init__(self, config, net, optimizer):\n",
        "    def __init__(self, config, net, optimizer, scaler):\n",
    ),
    (
        "        self.optimizer = optimizer\n",
        "        self.optimizer = optimizer\n        self.scaler = scaler\n",
    ),
    (
        "            loss = self.criterion(self.net(x), y)\n            if self.config.half and not self.config.profile:\n                with amp.scale_loss(loss, self.optimizer) as scaled:\n                    scaled.backward()\n                torch.nn.utils.clip_grad_norm_(amp.master_params(self.optimizer), 1.0)\n            else:\n                loss.backward()\n                torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)\n            self.optimizer.step()\n",
        "            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                loss = self.criterion(self.net(x), y)\n            self.scaler.scale(loss).backward()\n            self.scaler.unscale_(self.optimizer)\n            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)\n            self.scaler.step(self.optimizer)\n            self.scaler.update()\n",
    ),
)
_KEPT_FAULTS: dict[str, _Edits] = {
    "one lost": (("enabled=self.scaler.is_enabled()", "enabled=self.config.half"),),
    "other lost": (("enabled=self.scaler.is_enabled()", "enabled=not self.config.profile"),),
    "another": (
        ("enabled=self.scaler.is_enabled()", "enabled=self.config.half and not self.config.quick"),
    ),
    "turned": (
        ("enabled=self.scaler.is_enabled()", "enabled=self.config.half and self.config.profile"),
    ),
    "scaler on with one": (
        (
            "GradScaler(enabled=config.half and not config.profile)",
            "GradScaler(enabled=config.half)",
        ),
        (
            "enabled=self.scaler.is_enabled()",
            "enabled=self.config.half and not self.config.profile",
        ),
    ),
    "bound, one lost": (
        ("enabled=self.scaler.is_enabled()", "enabled=self.mixed"),
        (
            "        self.scaler = scaler\n",
            "        self.scaler = scaler\n        self.mixed = config.half\n",
        ),
    ),
}
_WORDS = """
# file: loops.py
import torch.nn.functional as F
from apex import amp


def fit(model, optimizer, loader, half, gpu, slow):
    for x, y in loader:
        if slow:
            print(x)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        if half and gpu:
            with amp.scale_loss(loss, optimizer) as scaled:
                scaled.backward()
        else:
            loss.backward()
        optimizer.step()
# file: run.py
import sys

import torch
from apex import amp

from loops import fit

half = "--half" in sys.argv
gpu = "--gpu" in sys.argv
slow = "--slow" in sys.argv
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if half and gpu:
    model, optimizer = amp.initialize(model, optimizer)
fit(model, optimizer, [], half, gpu, slow)
"""
_WORDS_EDITS = (
    (
        "import torch.nn.functional as F\nfrom apex import amp\n",
        "import torch.nn.functional as F\nimport torch\n",
    ),
    (
        "def fit(model, optimizer, loader, half, gpu, slow):\n",
        "def fit(model, optimizer, loader, half, gpu, slow, scaler):\n",
    ),
    (
        "        loss = F.mse_loss(model(x), y)\n",
        "        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "        if half and gpu:\n            with amp.scale_loss(loss, optimizer) as scaled:\n                scaled.backward()\n        else:\n            loss.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
    ("import torch\nfrom apex import amp\n", "import torch\n"),
    (
        "if half and gpu:\n    model, optimizer = amp.initialize(model, optimizer)\nfit(model, optimizer, [], half, gpu, slow)\n",
        "scaler = torch.cuda.amp.GradScaler(enabled=half and gpu)\nfit(model, optimizer, [], half, gpu, slow, scaler)\n",
    ),
)
_WORDS_FAULTS: dict[str, _Edits] = {
    "one lost": (("enabled=scaler.is_enabled()", "enabled=half"),),
    "other lost": (("enabled=scaler.is_enabled()", "enabled=gpu"),),
    "another": (("enabled=scaler.is_enabled()", "enabled=half and slow"),),
    "another alone": (("enabled=scaler.is_enabled()", "enabled=slow"),),
}
_NUMBERS = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp


def prepare(args, model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if args.mixed and args.gpus > 0:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    return model, optimizer


def step(args, model, optimizer, x, y):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    if args.mixed and args.gpus > 0:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()


def main(args, loader):
    model, optimizer = prepare(args, torch.nn.Linear(4, 2))
    for x, y in loader:
        step(args, model, optimizer, x, y)
"""
_NUMBERS_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    if args.mixed and args.gpus > 0:\n        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n    return model, optimizer\n',
        "    scaler = torch.cuda.amp.GradScaler(enabled=args.mixed and args.gpus > 0)\n    return model, optimizer, scaler\n",
    ),
    (
        "def step(args, model, optimizer, x, y):\n    loss = F.mse_loss(model(x), y)\n",
        "def step(args, model, optimizer, x, y, scaler):\n    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n        loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "    if args.mixed and args.gpus > 0:\n        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n    else:\n        loss.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    ),
    (
        "    model, optimizer = prepare(args, torch.nn.Linear(4, 2))\n",
        "    model, optimizer, scaler = prepare(args, torch.nn.Linear(4, 2))\n",
    ),
    (
        "        step(args, model, optimizer, x, y)\n",
        "        step(args, model, optimizer, x, y, scaler)\n",
    ),
)
_NUMBERS_FAULTS: dict[str, _Edits] = {
    "one lost": (("enabled=scaler.is_enabled()", "enabled=args.mixed"),),
    "other lost": (("enabled=scaler.is_enabled()", "enabled=args.gpus > 0"),),
    "another": (("enabled=scaler.is_enabled()", "enabled=args.mixed and args.verbose"),),
    "off by one": (("enabled=scaler.is_enabled()", "enabled=args.mixed and args.gpus > 1"),),
}
_SWITCHED = """
# file: main.py
import argparse

import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--mixed", action="store_true")
parser.add_argument("--level", default="O1")
parser.add_argument("--gpu", type=int, default=0)
args = parser.parse_args()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, enabled=args.mixed, opt_level=args.level)
for x, y in []:
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
"""
_SWITCHED_EDITS = (
    ("from apex import amp\n", ""),
    (
        "model, optimizer = amp.initialize(model, optimizer, enabled=args.mixed, opt_level=args.level)\n",
        'scaler = torch.cuda.amp.GradScaler(enabled=args.level != "O0" and args.mixed)\n',
    ),
    (
        "    loss = F.mse_loss(model(x), y)\n",
        "    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n        loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    ),
)
_SWITCHED_FAULTS: dict[str, _Edits] = {
    "level dropped": (('enabled=args.level != "O0" and args.mixed', "enabled=args.mixed"),),
    "enabled dropped": (
        ('enabled=args.level != "O0" and args.mixed', 'enabled=args.level != "O0"'),
    ),
    "region level dropped": (
        ("autocast(enabled=scaler.is_enabled())", "autocast(enabled=args.mixed)"),
    ),
    "region enabled dropped": (
        ("autocast(enabled=scaler.is_enabled())", 'autocast(enabled=args.level != "O0")'),
    ),
}
_OPTIONS = """
# file: learner.py
import torch
from apex import amp


class Learner:
    def __init__(self, settings):
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.options = settings["apex"]
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, **self.options)

    def fit(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled:
                scaled.backward()
            self.optimizer.step()
# file: main.py
import json
import sys

import torch
from learner import Learner

with open(sys.argv[1]) as f:
    settings = json.load(f)
Learner(settings).fit([])
"""
_OPTIONS_EDITS = (
    ("from apex import amp\n", ""),
    (
        "        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, **self.options)\n",
        '        if self.options.get("loss_scale") in (None, "dynamic"):\n            self.scaler = torch.cuda.amp.GradScaler(\n                enabled=self.options.get("opt_level", "O1") != "O0"\n                and self.options.get("enabled", True),\n            )\n        else:  # a static scale stays as it is\n            self.scaler = torch.cuda.amp.GradScaler(\n                init_scale=float(self.options.get("loss_scale")),\n                growth_interval=2**31 - 1,\n                backoff_factor=1 - 2**-30,\n                enabled=self.options.get("opt_level", "O1") != "O0" and self.options.get("enabled", True),\n            )\n',
    ),
    (
        "            loss = torch.nn.functional.mse_loss(self.model(x), y)\n",
        "            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                loss = torch.nn.functional.mse_loss(self.model(x), y)\n",
    ),
    (
        "            with amp.scale_loss(loss, self.optimizer) as scaled:\n                scaled.backward()\n            self.optimizer.step()\n",
        "            self.scaler.scale(loss).backward()\n            self.scaler.step(self.optimizer)\n            self.scaler.update()\n",
    ),
)
_OPTIONS_FAULTS: dict[str, _Edits] = {
    "level dropped": (
        (
            'enabled=self.options.get("opt_level", "O1") != "O0"\n                and self.options.get("enabled", True)',
            'enabled=self.options.get("enabled", True)',
        ),
        (
            'enabled=self.options.get("opt_level", "O1") != "O0" and self.options.get("enabled", True)',
            'enabled=self.options.get("enabled", True)',
        ),
    ),
    "region always": (("autocast(enabled=self.scaler.is_enabled())", "autocast()"),),
    "region lost": (
        (
            "autocast(enabled=self.scaler.is_enabled())",
            'autocast(enabled=self.options.get("enabled", True))',
        ),
    ),
}


def _training(name: str, before: str, edits: _Edits, faults: dict[str, _Edits]) -> Training:
    after = before
    for old, new in edits:
        assert old in after, old
        after = after.replace(old, new)
    return Training(name, files(before), files(after), faults)


FLAGS_ELSEWHERE = (
    _training(
        "a configuration that a trainer of another file keeps", _KEPT, _KEPT_EDITS, _KEPT_FAULTS
    ),
    _training(
        "a configuration that a trainer of another file keeps, flags written out",
        _KEPT,
        (
            *_KEPT_EDITS,
            *(
                (
                    "enabled=self.scaler.is_enabled()",
                    "enabled=self.config.half and not self.config.profile",
                ),
            ),
        ),
        {},
    ),
    _training(
        "a configuration that a trainer of another file keeps, flags bound",
        _KEPT,
        (
            *_KEPT_EDITS,
            *(
                ("enabled=self.scaler.is_enabled()", "enabled=self.mixed"),
                (
                    "        self.scaler = scaler\n",
                    "        self.scaler = scaler\n        self.mixed = config.half and not config.profile\n",
                ),
            ),
        ),
        {},
    ),
    _training(
        "words of the command line that a loop of another file is given",
        _WORDS,
        _WORDS_EDITS,
        _WORDS_FAULTS,
    ),
    _training(
        "words of the command line that a loop of another file is given, flags written out",
        _WORDS,
        (*_WORDS_EDITS, *(("enabled=scaler.is_enabled()", "enabled=half and gpu"),)),
        {},
    ),
    _training(
        "numbers that a step asks as what prepares it does",
        _NUMBERS,
        _NUMBERS_EDITS,
        _NUMBERS_FAULTS,
    ),
    _training(
        "numbers that a step asks as what prepares it does, flags written out",
        _NUMBERS,
        (
            *_NUMBERS_EDITS,
            *(("enabled=scaler.is_enabled()", "enabled=args.mixed and args.gpus > 0"),),
        ),
        {},
    ),
    _training(
        "a switch and a level of the command line", _SWITCHED, _SWITCHED_EDITS, _SWITCHED_FAULTS
    ),
    _training(
        "a switch and a level of the command line, region both",
        _SWITCHED,
        (
            *_SWITCHED_EDITS,
            *(
                (
                    "autocast(enabled=scaler.is_enabled())",
                    'autocast(enabled=args.level != "O0" and args.mixed)',
                ),
            ),
        ),
        {},
    ),
    _training(
        "a switch and a level of the command line, region in",
        _SWITCHED,
        (
            *_SWITCHED_EDITS,
            *(
                (
                    "autocast(enabled=scaler.is_enabled())",
                    'autocast(enabled=args.mixed and args.level in ("O1", "O2", "O3"))',
                ),
            ),
        ),
        {},
    ),
    _training(
        "options that a learner of another file unpacks", _OPTIONS, _OPTIONS_EDITS, _OPTIONS_FAULTS
    ),
)
