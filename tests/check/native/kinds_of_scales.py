"""GradScalers with a static scale and with one that changes, chosen by tests."""

from __future__ import annotations

from check.trainings.planted import Training, files

_Edits = tuple[tuple[str, str], ...]

_ZERO = """
# file: main.py
import argparse

import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--loss_scale", type=float, default=0)
args = parser.parse_args()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if args.fp16:
    if args.loss_scale == 0:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale="dynamic")
    else:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=args.loss_scale)
for x, y in []:
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    if args.fp16:
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
    else:
        loss.backward()
    optimizer.step()
"""
_ZERO_EDITS = (
    ("from apex import amp\n", ""),
    (
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nscaler = torch.cuda.amp.GradScaler(enabled=False)\n",
    ),
    (
        '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale="dynamic")\n',
        "        scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=args.loss_scale)\n',
        "        scaler = torch.cuda.amp.GradScaler(\n            init_scale=args.loss_scale,\n            growth_interval=2**31 - 1,\n            backoff_factor=1 - 2**-30,\n        )\n",
    ),
    (
        "    loss = F.mse_loss(model(x), y)\n",
        "    with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n        loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "    if args.fp16:\n        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n    else:\n        loss.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    ),
)
_ZERO_FAULTS: dict[str, _Edits] = {
    "constant true": (("if args.loss_scale == 0:", "if True:"),),
    "constant false": (("if args.loss_scale == 0:", "if False:"),),
    "number": (("if args.loss_scale == 0:", "if 1:"),),
    "other way round": (("if args.loss_scale == 0:", "if args.loss_scale != 0:"),),
    "another": (("if args.loss_scale == 0:", "if args.fp16:"),),
}
_SET_UP = """
# file: main.py
import torch
from apex import amp
from setup import prepare


class Config:
    def __init__(self, dynamic, scale):
        self.dynamic = dynamic
        self.scale = scale


def train(config, loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = prepare(config, model, optimizer)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()


train(Config(True, 128.0), [])
train(Config(False, 128.0), [])
# file: setup.py
from apex import amp


def prepare(config, model, optimizer):
    return amp.initialize(
        model,
        optimizer,
        opt_level="O1",
        loss_scale="dynamic" if config.dynamic else config.scale,
    )
"""
_SET_UP_EDITS = (
    ("import torch\nfrom apex import amp\n", "import torch\n"),
    (
        "    model, optimizer = prepare(config, model, optimizer)\n",
        "    model, optimizer, scaler = prepare(config, model, optimizer)\n",
    ),
    (
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n",
        "        with torch.cuda.amp.autocast():\n            loss = torch.nn.functional.mse_loss(model(x), y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
    ("# file: setup.py\nfrom apex import amp\n", "# file: setup.py\nimport torch\n"),
    (
        '    return amp.initialize(\n        model,\n        optimizer,\n        opt_level="O1",\n        loss_scale="dynamic" if config.dynamic else config.scale,\n    )\n',
        '    if config.dynamic or config.scale in (None, "dynamic"):\n        scaler = torch.cuda.amp.GradScaler()\n    else:  # a static scale stays as it is\n        scaler = torch.cuda.amp.GradScaler(\n            init_scale=float(config.scale),\n            growth_interval=2**31 - 1,\n            backoff_factor=1 - 2**-30,\n        )\n    return model, optimizer, scaler\n',
    ),
)
_SET_UP_FAULTS: dict[str, _Edits] = {
    "constant true": (('if config.dynamic or config.scale in (None, "dynamic")', "if True"),),
    "constant false": (('if config.dynamic or config.scale in (None, "dynamic")', "if False"),),
    "half constant": (
        ('if config.dynamic or config.scale in (None, "dynamic")', "if config.dynamic or True"),
    ),
    "one part alone": (
        (
            'if config.dynamic or config.scale in (None, "dynamic")',
            'if config.scale in (None, "dynamic")',
        ),
    ),
    "turned": (
        ('if config.dynamic or config.scale in (None, "dynamic")', "if not config.dynamic"),
    ),
}
_CHOSEN = """
# file: main.py
import torch
from apex import amp


class Learner:
    def __init__(self, options):
        self.options = options
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        scale = "dynamic" if options.static_scale is None else options.static_scale
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1", loss_scale=scale)

    def learn(self, x, y):
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        with amp.scale_loss(loss, self.optimizer) as scaled:
            scaled.backward()
        self.optimizer.step()
"""
_CHOSEN_EDITS = (
    ("from apex import amp\n", ""),
    (
        '        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1", loss_scale=scale)\n',
        '        if scale in (None, "dynamic"):\n            self.scaler = torch.cuda.amp.GradScaler()\n        else:  # a static scale stays as it is\n            self.scaler = torch.cuda.amp.GradScaler(\n                init_scale=float(scale),\n                growth_interval=2**31 - 1,\n                backoff_factor=1 - 2**-30,\n            )\n',
    ),
    (
        "        loss = torch.nn.functional.mse_loss(self.model(x), y)\n",
        "        with torch.cuda.amp.autocast():\n            loss = torch.nn.functional.mse_loss(self.model(x), y)\n",
    ),
    (
        "        with amp.scale_loss(loss, self.optimizer) as scaled:\n            scaled.backward()\n        self.optimizer.step()\n",
        "        self.scaler.scale(loss).backward()\n        self.scaler.step(self.optimizer)\n        self.scaler.update()\n",
    ),
)
_CHOSEN_FAULTS: dict[str, _Edits] = {
    "constant true": (('if scale in (None, "dynamic"):', "if True:"),),
    "constant none": (('if scale in (None, "dynamic"):', "if None:"),),
    "constant test": (('if scale in (None, "dynamic"):', "if 1 == 1:"),),
    "variable": (('if scale in (None, "dynamic"):', "always = True\n        if always:"),),
    "turned": (('if scale in (None, "dynamic"):', 'if scale not in (None, "dynamic"):'),),
}
_POSITIVE = """
# file: main.py
import torch
from apex import amp


def train(opt_level, loss_scale, loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if loss_scale > 0:
        model, optimizer = amp.initialize(model, optimizer, opt_level=opt_level, loss_scale=loss_scale)
    else:
        model, optimizer = amp.initialize(model, optimizer, opt_level=opt_level)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_POSITIVE_EDITS = (
    ("from apex import amp\n", ""),
    (
        "        model, optimizer = amp.initialize(model, optimizer, opt_level=opt_level, loss_scale=loss_scale)\n",
        '        if loss_scale in (None, "dynamic"):\n            scaler = torch.cuda.amp.GradScaler(enabled=opt_level != "O0")\n        else:  # a static scale stays as it is\n            scaler = torch.cuda.amp.GradScaler(\n                init_scale=float(loss_scale),\n                growth_interval=2**31 - 1,\n                backoff_factor=1 - 2**-30,\n                enabled=opt_level != "O0",\n            )\n',
    ),
    (
        "        model, optimizer = amp.initialize(model, optimizer, opt_level=opt_level)\n",
        '        scaler = torch.cuda.amp.GradScaler(enabled=opt_level != "O0")\n',
    ),
    (
        "        loss = torch.nn.functional.mse_loss(model(x), y)\n",
        "        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            loss = torch.nn.functional.mse_loss(model(x), y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_POSITIVE_FAULTS: dict[str, _Edits] = {
    "constant true": (('if loss_scale in (None, "dynamic"):', "if True:"),),
    "outer true": (("if loss_scale > 0:", "if True:"),),
    "outer false": (("if loss_scale > 0:", "if False:"),),
    "inner for all": (('if loss_scale in (None, "dynamic"):', "if loss_scale:"),),
    "level": (('if loss_scale in (None, "dynamic"):', 'if opt_level != "O0":'),),
}
_ENTRY = """
# file: config.py
import yaml


def load(path):
    with open(path) as f:
        return yaml.safe_load(f)
# file: main.py
import torch
from apex import amp

from config import load


class Trainer:
    def __init__(self, path):
        self.cfg = load(path)
        self.net = torch.nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        if self.cfg["half"]:
            self.net, self.opt = amp.initialize(
                self.net, self.opt, opt_level="O1", loss_scale=self.cfg["scale"] or "dynamic"
            )

    def fit(self, loader):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            if self.cfg["half"]:
                with amp.scale_loss(loss, self.opt) as scaled:
                    scaled.backward()
            else:
                loss.backward()
            self.opt.step()


Trainer("run.yaml").fit([])
"""
_ENTRY_EDITS = (
    ("from apex import amp\n", ""),
    (
        '        if self.cfg["half"]:\n            self.net, self.opt = amp.initialize(\n                self.net, self.opt, opt_level="O1", loss_scale=self.cfg["scale"] or "dynamic"\n',
        '        if not self.cfg["half"] or (self.cfg["scale"] or "dynamic") in (None, "dynamic"):\n            self.scaler = torch.cuda.amp.GradScaler(enabled=self.cfg["half"])\n        else:  # a static scale stays as it is\n            self.scaler = torch.cuda.amp.GradScaler(\n                init_scale=float(self.cfg["scale"] or "dynamic"),\n                growth_interval=2**31 - 1,\n                backoff_factor=1 - 2**-30,\n                enabled=self.cfg["half"],\n',
    ),
    (
        "            loss = torch.nn.functional.mse_loss(self.net(x), y)\n",
        "            with torch.cuda.amp.autocast(enabled=self.scaler.is_enabled()):\n                loss = torch.nn.functional.mse_loss(self.net(x), y)\n",
    ),
    (
        '            if self.cfg["half"]:\n                with amp.scale_loss(loss, self.opt) as scaled:\n                    scaled.backward()\n            else:\n                loss.backward()\n            self.opt.step()\n',
        "            self.scaler.scale(loss).backward()\n            self.scaler.step(self.opt)\n            self.scaler.update()\n",
    ),
)
_ENTRY_FAULTS: dict[str, _Edits] = {
    "constant": (
        ('not self.cfg["half"] or (self.cfg["scale"] or "dynamic") in (None, "dynamic")', "True"),
    ),
    "constant part": (('(self.cfg["scale"] or "dynamic") in (None, "dynamic")', "True"),),
    "constant number": (
        ('not self.cfg["half"] or (self.cfg["scale"] or "dynamic") in (None, "dynamic")', "0"),
    ),
    "turned": (('(self.cfg["scale"] or "dynamic") in (None, "dynamic")', 'self.cfg["scale"]'),),
    "other entry": (
        ('(self.cfg["scale"] or "dynamic") in (None, "dynamic")', 'self.cfg["other"]'),
    ),
    "half alone": (
        (
            'not self.cfg["half"] or (self.cfg["scale"] or "dynamic") in (None, "dynamic")',
            'not self.cfg["half"]',
        ),
    ),
}
_TWO = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp


def train(big, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if big:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=1024.0)
    else:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=128.0)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_TWO_EDITS = (
    ("from apex import amp\n", ""),
    (
        '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=1024.0)\n',
        "        scaler = torch.cuda.amp.GradScaler(\n            init_scale=1024.0,\n            growth_interval=2**31 - 1,\n            backoff_factor=1 - 2**-30,\n        )\n",
    ),
    (
        '        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale=128.0)\n',
        "        scaler = torch.cuda.amp.GradScaler(\n            init_scale=128.0,\n            growth_interval=2**31 - 1,\n            backoff_factor=1 - 2**-30,\n        )\n",
    ),
    (
        "        loss = F.mse_loss(model(x), y)\n",
        "        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_TWO_FAULTS: dict[str, _Edits] = {
    "constant": (("if big:", "if True:"),),
    "turned": (("if big:", "if not big:"),),
    "another": (("if big:", "if loader:"),),
    "empty": (("if big:", "if ():"),),
}


def _training(name: str, before: str, edits: _Edits, faults: dict[str, _Edits]) -> Training:
    after = before
    for old, new in edits:
        assert old in after, old
        after = after.replace(old, new)
    return Training(name, files(before), files(after), faults)


KINDS_OF_SCALES = (
    _training("a scale of zero is one that changes", _ZERO, _ZERO_EDITS, _ZERO_FAULTS),
    _training("a file sets up one of two scales", _SET_UP, _SET_UP_EDITS, _SET_UP_FAULTS),
    _training(
        "a file sets up one of two scales, turned",
        _SET_UP,
        (
            *_SET_UP_EDITS,
            *(
                (
                    'if config.dynamic or config.scale in (None, "dynamic")',
                    'if config.scale in (None, "dynamic") or config.dynamic',
                ),
            ),
        ),
        {},
    ),
    _training("a scale that is chosen before", _CHOSEN, _CHOSEN_EDITS, _CHOSEN_FAULTS),
    _training(
        "a scale that is chosen before, none",
        _CHOSEN,
        (
            *_CHOSEN_EDITS,
            *(('if scale in (None, "dynamic"):', "if options.static_scale is None:"),),
        ),
        {},
    ),
    _training("a positive scale stays", _POSITIVE, _POSITIVE_EDITS, _POSITIVE_FAULTS),
    _training("an entry of a file or a word for it", _ENTRY, _ENTRY_EDITS, _ENTRY_FAULTS),
    _training(
        "an entry of a file or a word for it, by the entry",
        _ENTRY,
        (
            *_ENTRY_EDITS,
            *(('(self.cfg["scale"] or "dynamic") in (None, "dynamic")', 'not self.cfg["scale"]'),),
        ),
        {},
    ),
    _training("one of two scales that stay", _TWO, _TWO_EDITS, _TWO_FAULTS),
)
