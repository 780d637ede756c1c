"""Networks that `amp.initialize` was not given, at levels of the command line: only O1 cast them."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BESIDE_BEFORE = """# file: main.py
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from apex import amp

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(4, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

def main(args, batches):
    net, other = Net(4), Net(16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level=args.opt_level)
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(other(x).argmax(1))
        with torch.no_grad():
            print(net(x).argmax(1))

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O1")
main(parser.parse_args(), [])
"""
_BESIDE_AFTER = """# file: main.py
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(4, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

def main(args, batches):
    net, other = Net(4), Net(16)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.opt_level != "O0")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.opt_level == "O1"):
            print(other(x).argmax(1))
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.opt_level != "O0"):
            print(net(x).argmax(1))

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O1")
main(parser.parse_args(), [])
"""
_MADE_SINCE_BEFORE = """# file: fit.py
import torch
import torch.nn.functional as F
from apex import amp

def fit(cfg, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if cfg.fp16:
        net, optimizer = amp.initialize(net, optimizer, opt_level=cfg.fp16_level)
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        if cfg.fp16:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
# file: run.py
import argparse
import torch
import torch.nn as nn
from fit import fit

def main(cfg, batches):
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    fit(cfg, net, batches)
    torch.save(net.state_dict(), "last.pt")
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    net.load_state_dict(torch.load("last.pt"))
    for x, y in batches:
        with torch.no_grad():
            print(net(x).argmax(1))

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--fp16_level", default="O1")
main(parser.parse_args(), [])
"""
_MADE_SINCE_AFTER = """# file: fit.py
import torch
import torch.nn.functional as F

def fit(cfg, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=cfg.fp16 and cfg.fp16_level != "O0")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
# file: run.py
import argparse
import torch
import torch.nn as nn
from fit import fit

def main(cfg, batches):
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    fit(cfg, net, batches)
    torch.save(net.state_dict(), "last.pt")
    net = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2))
    net.load_state_dict(torch.load("last.pt"))
    for x, y in batches:
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=cfg.fp16 and cfg.fp16_level == "O1"):
            print(net(x).argmax(1))

parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--fp16_level", default="O1")
main(parser.parse_args(), [])
"""
_ONE = 'with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.opt_level == "O1"):\n            print(other'
_BARE = "with torch.no_grad():\n            print(other"
_ANY = 'with torch.no_grad(), torch.cuda.amp.autocast(enabled=args.opt_level != "O0"):\n            print(other'
_BY_SCALER = "with torch.no_grad(), torch.cuda.amp.autocast(enabled=scaler.is_enabled()):\n            print(other"
_AT_O2 = ("opt_level=args.opt_level", 'opt_level="O2"')


def _at_o2(text: str) -> str:
    """Return a text whose level is O2, always; the other network goes without casts."""
    text = text.replace(*_AT_O2).replace(_ONE, _BARE)
    return text.replace('enabled=args.opt_level != "O0"', "")


def _with_choices(text: str) -> str:
    return text.replace('default="O1"', 'default="O1", choices=["O0", "O1"]').replace(_ONE, _ANY)


_KEPT_BEFORE = """# file: main.py
import torch
import torch.nn as nn
import torch.nn.functional as F
from apex import amp

class Tester:
    def __init__(self, model):
        self.model = model

    def score(self, x):
        model = self.model
        with torch.no_grad():
            return model(x).argmax(1)

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O2")
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    state = net.state_dict()
    net = nn.Linear(4, 2)
    net.load_state_dict(state)
    tester = Tester(net)
    print(tester.score(torch.ones(2, 4)))

main([])
"""
_KEPT_AFTER = """# file: main.py
import torch
import torch.nn as nn
import torch.nn.functional as F

class Tester:
    def __init__(self, model):
        self.model = model

    def score(self, x):
        model = self.model
        with torch.no_grad():
            return model(x).argmax(1)

def main(batches):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    state = net.state_dict()
    net = nn.Linear(4, 2)
    net.load_state_dict(state)
    tester = Tester(net)
    print(tester.score(torch.ones(2, 4)))

main([])
"""

NOT_GIVEN = (
    Training(
        "a network beside the training at a level of the command line",
        files(_BESIDE_BEFORE),
        files(_BESIDE_AFTER),
        {
            "cast at every level": ((_ONE, _ANY),),
            "cast where the loss is scaled": ((_ONE, _BY_SCALER),),
            "never cast": ((_ONE, _BARE),),
            "the network that is trained is cast at O1 alone": (
                (
                    'autocast(enabled=args.opt_level != "O0"):\n            print(net',
                    'autocast(enabled=args.opt_level == "O1"):\n            print(net',
                ),
            ),
            "cast at O2 alone": ((_ONE, _ONE.replace("O1", "O2")),),
        },
    ),
    Training(
        "a network beside the training whose level is O2",
        files(_at_o2(_BESIDE_BEFORE)),
        files(_at_o2(_BESIDE_AFTER)),
        {
            "cast as well": (
                (_BARE, _BARE.replace("no_grad():", "no_grad(), torch.cuda.amp.autocast():")),
            ),
        },
    ),
    Training(
        "a network beside the training at one level that casts",
        files(_with_choices(_BESIDE_BEFORE)),
        files(_with_choices(_BESIDE_AFTER)),
        {"never cast": ((_ANY, _BARE),)},
    ),
    Training(
        "a network made since in another file",
        files(_MADE_SINCE_BEFORE),
        files(_MADE_SINCE_AFTER),
        {
            "cast at every level": (('cfg.fp16_level == "O1"', 'cfg.fp16_level != "O0"'),),
            "cast without the flag": (
                ('cfg.fp16 and cfg.fp16_level == "O1"', 'cfg.fp16_level == "O1"'),
            ),
            "never cast": (
                (', torch.cuda.amp.autocast(enabled=cfg.fp16 and cfg.fp16_level == "O1")', ""),
            ),
        },
    ),
    Training(
        "a network made since that a note names",
        files(_MADE_SINCE_BEFORE),
        files(_MADE_SINCE_AFTER.replace('cfg.fp16_level == "O1"', 'cfg.fp16_level != "O0"')),
        {},
        (("AMP123", "run.py", 14, 14, True),),
    ),
    Training(
        "a network made since that an object keeps",
        files(_KEPT_BEFORE),
        files(_KEPT_AFTER),
        {
            "cast as well": (("no_grad():\n", "no_grad(), torch.cuda.amp.autocast():\n"),),
        },
    ),
)
