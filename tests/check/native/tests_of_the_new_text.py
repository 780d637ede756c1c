"""Tests that only the new text has: around what it does to gradients and casts, or to choose a block."""

from __future__ import annotations

from check.trainings.planted import Training, files

_Edits = tuple[tuple[str, str], ...]


def _under(statement: str, test: str, indent: str = "        ") -> _Edits:
    """Return the edit that puts a statement under a test."""
    line = f"{indent}{statement}\n"
    return ((line, f"{indent}if {test}:\n    {line}"),)


_BLOCK = "        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n"
_MEASURED = "            with torch.cuda.amp.autocast():\n                output = model(x)\n"


def _blocks(test: str) -> dict[str, _Edits]:
    """Return the edits that let a test decide whether a block casts."""
    chosen = f"torch.cuda.amp.autocast() if {test} else contextlib.nullcontext()"
    plain = "        else:\n            loss = F.mse_loss(model(x), y)\n"
    under = "".join(f"    {line}\n" for line in _BLOCK.splitlines())
    return {
        f"casts under {test}": ((_BLOCK, f"        if {test}:\n{under}{plain}"),),
        f"casts are given {test}": (
            (_BLOCK, _BLOCK.replace("autocast()", f"autocast(enabled=bool({test}))")),
        ),
        f"casts are chosen by {test}": (
            (_BLOCK, _BLOCK.replace("torch.cuda.amp.autocast()", chosen)),
            ("import argparse\n", "import argparse\nimport contextlib\n"),
        ),
    }


_ASKED = (
    "args.verbose",
    "not args.verbose",
    "args.distributed",
    "i % 10 == 0",
    "i > 0",
    "model.training",
    "torch.cuda.is_available()",
    "scaler.get_scale() > 1",
    "x.size(0) > 1",
    "len(x)",
)
_TRAINS = (
    "scaler.scale(loss).backward()",
    "scaler.unscale_(optimizer)",
    "scaler.step(optimizer)",
    "scaler.update()",
)

_LOOP = """
# file: main.py
import argparse

import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--verbose", action="store_true")
parser.add_argument("--distributed", action="store_true")
args = parser.parse_args()


def validate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            output = model(x)
            total += F.mse_loss(output, y).item()
    model.train()
    return total


def main(loader):
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)
    for i, (x, y) in enumerate(loader):
        if args.verbose:
            print(i)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
        optimizer.step()
        if i % 10 == 0:
            print(loss.item())
        if i % 100 == 0:
            print(validate(model, loader))


main([])
"""
_LOOP_EDITS = (
    ("from apex import amp\n", ""),
    (
        "            output = model(x)\n            total += F.mse_loss(output, y).item()\n",
        "            with torch.cuda.amp.autocast():\n                output = model(x)\n                total += F.mse_loss(output, y).item()\n",
    ),
    (
        '    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        loss = F.mse_loss(model(x), y)\n",
        "        with torch.cuda.amp.autocast():\n            loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)\n        optimizer.step()\n",
        "        scaler.scale(loss).backward()\n        scaler.unscale_(optimizer)\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n        scaler.step(optimizer)\n        scaler.update()\n",
    ),
)
_LOOP_FAULTS: dict[str, _Edits] = {
    **{
        f"{call} under {test}": _under(call, test)
        for test in (*_ASKED, "loss.item() > 0")
        for call in _TRAINS
    },
    **{name: edits for test in _ASKED for name, edits in _blocks(test).items()},
    **{
        f"evaluated with casts under {test}": (
            (_MEASURED, _MEASURED.replace("()", f"(enabled={test})", 1)),
        )
        for test in ("args.verbose", "model.training", "x.is_cuda", "total", "not args.distributed")
    },
    **{
        f"scaled under {test}": (("GradScaler()", f"GradScaler(enabled={test})"),)
        for test in ("args.verbose", "torch.cuda.is_available()")
    },
    "goes on without a step": (
        (
            "        scaler.step(optimizer)\n",
            "        if scaler.get_scale() < 1:\n            continue\n        scaler.step(optimizer)\n",
        ),
    ),
    "ends behind an update": (
        (
            "        scaler.update()\n",
            "        scaler.update()\n        if scaler.get_scale() < 1:\n            break\n",
        ),
    ),
    "updated by a part of an expression": (
        ("        scaler.update()\n", "        args.verbose or scaler.update()\n"),
    ),
    "unscaled by a part of an expression": (
        (
            "        scaler.unscale_(optimizer)\n",
            "        scaler.unscale_(optimizer) if args.verbose else None\n",
        ),
    ),
}
_SESSION = """
# file: main.py
import torch
from apex import amp

from steps import learn


class Session:
    def __init__(self, model, debug):
        self.debug = debug
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")

    def run(self, loader, every):
        for i, (x, y) in enumerate(loader):
            if self.debug:
                print(x.shape)
            loss = torch.nn.functional.mse_loss(self.model(x), y) / every
            learn(loss, self.optimizer, (i + 1) % every == 0)


Session(torch.nn.Linear(4, 2), False).run([], 4)
# file: steps.py
from apex import amp


def learn(loss, optimizer, last):
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
"""
_SESSION_EDITS = (
    ("import torch\nfrom apex import amp\n", "import torch\n"),
    (
        '        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")\n',
        "        self.scaler = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "            loss = torch.nn.functional.mse_loss(self.model(x), y) / every\n            learn(loss, self.optimizer, (i + 1) % every == 0)\n",
        "            with torch.cuda.amp.autocast():\n                loss = torch.nn.functional.mse_loss(self.model(x), y) / every\n            learn(loss, self.optimizer, (i + 1) % every == 0, self.scaler)\n",
    ),
    (
        "from apex import amp\n\n\ndef learn(loss, optimizer, last):\n    with amp.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n",
        "def learn(loss, optimizer, last, scaler):\n    scaler.scale(loss).backward()\n",
    ),
    ("        optimizer.step()\n", "        scaler.step(optimizer)\n        scaler.update()\n"),
)
_SESSION_FAULTS: dict[str, _Edits] = {
    **{
        f"the block is given {t}": (("autocast()", f"autocast(enabled=bool({t}))"),)
        for t in ("self.debug", "i > 0", "every > 1", "len(loader)")
    },
    **{
        f"the last round asks {t}": (("every == 0, self", f"every == 0 and {t}, self"),)
        for t in ("self.debug", "i > 0", "every > 1")
    },
    **{
        f"backward under {t}": _under("scaler.scale(loss).backward()", t, "    ")
        for t in ("last", "not last", "optimizer", "loss > 0")
    },
    **{
        f"{call} under {t}": _under(call, t)
        for call in _TRAINS[2:]
        for t in ("not last", "scaler.get_scale() > 0", "loss > 0")
    },
}
_FLAG = """
# file: main.py
import argparse

import torch
import torch.nn.functional as F
from apex import amp

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if args.fp16:
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
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
_FLAG_EDITS = (
    ("from apex import amp\n", ""),
    (
        'if args.fp16:\n    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")\n',
        "scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)\n",
    ),
    (
        "    loss = F.mse_loss(model(x), y)\n",
        "    with torch.cuda.amp.autocast(enabled=args.fp16):\n        loss = F.mse_loss(model(x), y)\n",
    ),
    (
        "    if args.fp16:\n        with amp.scale_loss(loss, optimizer) as scaled:\n            scaled.backward()\n    else:\n        loss.backward()\n    optimizer.step()\n",
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n",
    ),
)
_FLAG_FAULTS: dict[str, _Edits] = {
    "chosen by cuda": (
        (
            "torch.cuda.amp.autocast(enabled=args.fp16)",
            "torch.cuda.amp.autocast() if args.fp16 and torch.cuda.is_available() else contextlib.nullcontext()",
        ),
        ("import argparse\n", "import argparse\nimport contextlib\n"),
    ),
    "chosen by the scale": (
        (
            "torch.cuda.amp.autocast(enabled=args.fp16)",
            "torch.cuda.amp.autocast() if args.fp16 and scaler.get_scale() > 1 else contextlib.nullcontext()",
        ),
        ("import argparse\n", "import argparse\nimport contextlib\n"),
    ),
    "kept, by the loader": (
        (
            "    with torch.cuda.amp.autocast(enabled=args.fp16):",
            "    casts = torch.cuda.amp.autocast() if args.fp16 and x.is_cuda else contextlib.nullcontext()\n    with casts:",
        ),
        ("import argparse\n", "import argparse\nimport contextlib\n"),
    ),
    "turned": (
        (
            "torch.cuda.amp.autocast(enabled=args.fp16)",
            "torch.cuda.amp.autocast() if not args.fp16 else contextlib.nullcontext()",
        ),
        ("import argparse\n", "import argparse\nimport contextlib\n"),
    ),
}
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
    "chosen by one": (
        (
            "torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
            "torch.cuda.amp.autocast() if self.config.half else contextlib.nullcontext()",
        ),
        ("import torch\n", "import contextlib\n\nimport torch\n"),
    ),
    "chosen by another": (
        (
            "torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
            "torch.cuda.amp.autocast() if self.config.half and not self.config.quick else contextlib.nullcontext()",
        ),
        ("import torch\n", "import contextlib\n\nimport torch\n"),
    ),
}
_TWO = """
# file: main.py
import torch
import torch.nn.functional as F
from apex import amp


def train(args, loader):
    net_g = torch.nn.Linear(4, 4)
    net_d = torch.nn.Linear(4, 1)
    opt_g = torch.optim.Adam(net_g.parameters())
    opt_d = torch.optim.Adam(net_d.parameters())
    extra = torch.cuda.amp.GradScaler() if args.extra else None
    [net_g, net_d], [opt_g, opt_d] = amp.initialize([net_g, net_d], [opt_g, opt_d], opt_level="O1", num_losses=2)
    for z, real in loader:
        loss_d = F.softplus(-net_d(real)).mean()
        opt_d.zero_grad()
        with amp.scale_loss(loss_d, opt_d, loss_id=0) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt_d), 1.0)
        opt_d.step()
        loss_g = F.softplus(-net_d(net_g(z))).mean()
        opt_g.zero_grad()
        with amp.scale_loss(loss_g, opt_g, loss_id=1) as scaled:
            scaled.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(opt_g), 1.0)
        opt_g.step()
        if extra is not None:
            print(extra.get_scale())
"""
_TWO_EDITS = (
    ("from apex import amp\n", ""),
    (
        '    [net_g, net_d], [opt_g, opt_d] = amp.initialize([net_g, net_d], [opt_g, opt_d], opt_level="O1", num_losses=2)\n',
        "    scaler_d = torch.cuda.amp.GradScaler()\n    scaler_g = torch.cuda.amp.GradScaler()\n",
    ),
    (
        "        loss_d = F.softplus(-net_d(real)).mean()\n",
        "        with torch.cuda.amp.autocast():\n            loss_d = F.softplus(-net_d(real)).mean()\n",
    ),
    (
        "        with amp.scale_loss(loss_d, opt_d, loss_id=0) as scaled:\n            scaled.backward()\n        torch.nn.utils.clip_grad_norm_(amp.master_params(opt_d), 1.0)\n        opt_d.step()\n        loss_g = F.softplus(-net_d(net_g(z))).mean()\n",
        "        scaler_d.scale(loss_d).backward()\n        scaler_d.unscale_(opt_d)\n        torch.nn.utils.clip_grad_norm_(net_d.parameters(), 1.0)\n        scaler_d.step(opt_d)\n        scaler_d.update()\n        with torch.cuda.amp.autocast():\n            loss_g = F.softplus(-net_d(net_g(z))).mean()\n",
    ),
    (
        "        with amp.scale_loss(loss_g, opt_g, loss_id=1) as scaled:\n            scaled.backward()\n        torch.nn.utils.clip_grad_norm_(amp.master_params(opt_g), 1.0)\n        opt_g.step()\n",
        "        scaler_g.scale(loss_g).backward()\n        scaler_g.unscale_(opt_g)\n        torch.nn.utils.clip_grad_norm_(net_g.parameters(), 1.0)\n        scaler_g.step(opt_g)\n        scaler_g.update()\n",
    ),
)
_TWO_FAULTS: dict[str, _Edits] = {
    **{
        f"{call} under {test}": _under(call, test)
        for call in (
            "scaler_d.unscale_(opt_d)",
            "scaler_d.step(opt_d)",
            "scaler_d.update()",
            "scaler_g.update()",
        )
        for test in ("extra is not None", "extra", "not extra", "extra is None", "scaler_g is None")
    },
    "backward": (
        (
            "        scaler_d.scale(loss_d).backward()\n",
            "        if extra is not None:\n            scaler_d.scale(loss_d).backward()\n        else:\n            loss_d.backward()\n",
        ),
    ),
    "d is the extra one": (
        ("    scaler_d = torch.cuda.amp.GradScaler()\n", "    scaler_d = extra\n"),
        (
            "        scaler_d.unscale_(opt_d)\n",
            "        if scaler_d is not None:\n            scaler_d.unscale_(opt_d)\n",
        ),
        (
            "        scaler_d.update()\n",
            "        if scaler_d is not None:\n            scaler_d.update()\n",
        ),
        (
            "        scaler_d.step(opt_d)\n",
            "        if scaler_d is not None:\n            scaler_d.step(opt_d)\n        else:\n            opt_d.step()\n",
        ),
        (
            "        scaler_d.scale(loss_d).backward()\n",
            "        if scaler_d is not None:\n            scaler_d.scale(loss_d).backward()\n        else:\n            loss_d.backward()\n",
        ),
    ),
    "d may be missing": (
        (
            "    scaler_d = torch.cuda.amp.GradScaler()\n",
            "    scaler_d = torch.cuda.amp.GradScaler() if args.deep else None\n",
        ),
        (
            "        scaler_d.unscale_(opt_d)\n",
            "        if scaler_d is not None:\n            scaler_d.unscale_(opt_d)\n",
        ),
        (
            "        scaler_d.update()\n",
            "        if scaler_d is not None:\n            scaler_d.update()\n",
        ),
        (
            "        scaler_d.step(opt_d)\n",
            "        if scaler_d is not None:\n            scaler_d.step(opt_d)\n",
        ),
    ),
    "d may be missing, updates alone": (
        (
            "    scaler_d = torch.cuda.amp.GradScaler()\n",
            "    scaler_d = torch.cuda.amp.GradScaler()\n    again = scaler_d if args.deep else None\n",
        ),
        (
            "        scaler_d.update()\n",
            "        if again is not None:\n            scaler_d.update()\n",
        ),
    ),
    "d may be missing, unscaled alone": (
        (
            "    scaler_d = torch.cuda.amp.GradScaler()\n",
            "    scaler_d = torch.cuda.amp.GradScaler()\n    again = scaler_d if args.deep else None\n",
        ),
        (
            "        scaler_d.unscale_(opt_d)\n",
            "        if again is not None:\n            scaler_d.unscale_(opt_d)\n",
        ),
    ),
    "third asked": (
        (
            "    scaler_d = torch.cuda.amp.GradScaler()\n",
            "    scaler_d = torch.cuda.amp.GradScaler()\n    third = torch.cuda.amp.GradScaler() if args.deep else None\n",
        ),
        (
            "        scaler_d.update()\n",
            "        if third is not None:\n            scaler_d.update()\n",
        ),
    ),
    "third asked for unscale": (
        (
            "    scaler_d = torch.cuda.amp.GradScaler()\n",
            "    scaler_d = torch.cuda.amp.GradScaler()\n    third = torch.cuda.amp.GradScaler() if args.deep else None\n",
        ),
        (
            "        scaler_d.unscale_(opt_d)\n",
            "        if third is not None:\n            scaler_d.unscale_(opt_d)\n",
        ),
    ),
}


def _training(name: str, before: str, edits: _Edits, faults: dict[str, _Edits]) -> Training:
    after = before
    for old, new in edits:
        assert old in after, old
        after = after.replace(old, new)
    return Training(name, files(before), files(after), faults)


TESTS_OF_THE_NEW_TEXT = (
    _training("a loop with tests of its own", _LOOP, _LOOP_EDITS, _LOOP_FAULTS),
    _training("a step of another file", _SESSION, _SESSION_EDITS, _SESSION_FAULTS),
    _training("a block chosen by a flag", _FLAG, _FLAG_EDITS, _FLAG_FAULTS),
    _training(
        "a block chosen by a flag, chosen",
        _FLAG,
        (
            *_FLAG_EDITS,
            *(
                (
                    "torch.cuda.amp.autocast(enabled=args.fp16)",
                    "torch.cuda.amp.autocast() if args.fp16 else contextlib.nullcontext()",
                ),
                ("import argparse\n", "import argparse\nimport contextlib\n"),
            ),
        ),
        {},
    ),
    _training(
        "a block chosen by a flag, chosen the other way",
        _FLAG,
        (
            *_FLAG_EDITS,
            *(
                (
                    "torch.cuda.amp.autocast(enabled=args.fp16)",
                    "contextlib.nullcontext() if not args.fp16 else torch.cuda.amp.autocast()",
                ),
                ("import argparse\n", "import argparse\nimport contextlib\n"),
            ),
        ),
        {},
    ),
    _training(
        "a block chosen by a flag, kept",
        _FLAG,
        (
            *_FLAG_EDITS,
            *(
                (
                    "    with torch.cuda.amp.autocast(enabled=args.fp16):",
                    "    casts = torch.cuda.amp.autocast() if args.fp16 else contextlib.nullcontext()\n    with casts:",
                ),
                ("import argparse\n", "import argparse\nimport contextlib\n"),
            ),
        ),
        {},
    ),
    _training("a block chosen by flags of another file", _KEPT, _KEPT_EDITS, _KEPT_FAULTS),
    _training(
        "a block chosen by flags of another file, chosen",
        _KEPT,
        (
            *_KEPT_EDITS,
            *(
                (
                    "torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
                    "torch.cuda.amp.autocast() if self.config.half and not self.config.profile else contextlib.nullcontext()",
                ),
                ("import torch\n", "import contextlib\n\nimport torch\n"),
            ),
        ),
        {},
    ),
    _training(
        "a block chosen by flags of another file, chosen by the scaler",
        _KEPT,
        (
            *_KEPT_EDITS,
            *(
                (
                    "torch.cuda.amp.autocast(enabled=self.scaler.is_enabled())",
                    "torch.cuda.amp.autocast() if self.scaler.is_enabled() else contextlib.nullcontext()",
                ),
                ("import torch\n", "import contextlib\n\nimport torch\n"),
            ),
        ),
        {},
    ),
    _training("GradScalers beside one that may be missing", _TWO, _TWO_EDITS, _TWO_FAULTS),
)
