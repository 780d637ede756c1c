"""Networks that a loader hands out with something else: those made anew were cast at O1 alone, at levels of the command line."""

from __future__ import annotations

from check.trainings.planted import Training, files

_MAKES = """    net = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 2))
    return net, ["cat", "dog"]
"""
_KEEPS = """    if width not in MADE:
        MADE[width] = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 2))
    return MADE[width], ["cat", "dog"]
"""
_BEFORE = f"""# file: load.py
import torch.nn as nn

MADE = {{}}

def load(width):
{_MAKES}
# file: fit.py
import torch
import torch.nn.functional as F
from apex import amp

def fit(cfg, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level=cfg.level)
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
# file: run.py
import argparse
import torch
from fit import fit
from load import load

def main(cfg, batches):
    net, names = load(8)
    fit(cfg, net, batches)
    torch.save(net.state_dict(), "last.pt")
    net, names = load(8)
    net.load_state_dict(torch.load("last.pt"))
    for x, y in batches:
        with torch.no_grad():
            found = net(x).argmax(1)
        print([names[i] for i in found.tolist()])

parser = argparse.ArgumentParser()
parser.add_argument("--level", default="O1")
main(parser.parse_args(), [])
"""
_AFTER = f"""# file: load.py
import torch.nn as nn

MADE = {{}}

def load(width):
{_MAKES}
# file: fit.py
import torch
import torch.nn.functional as F

def fit(cfg, net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=cfg.level != "O0")
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
from fit import fit
from load import load

def main(cfg, batches):
    net, names = load(8)
    fit(cfg, net, batches)
    torch.save(net.state_dict(), "last.pt")
    net, names = load(8)
    net.load_state_dict(torch.load("last.pt"))
    for x, y in batches:
        with torch.no_grad(), torch.cuda.amp.autocast(enabled=cfg.level == "O1"):
            found = net(x).argmax(1)
        print([names[i] for i in found.tolist()])

parser = argparse.ArgumentParser()
parser.add_argument("--level", default="O1")
main(parser.parse_args(), [])
"""
_ONE, _ANY = 'enabled=cfg.level == "O1"', 'enabled=cfg.level != "O0"'
_SECOND = '.state_dict(), "last.pt")\n    net, names = load(8)\n'


def _second(text: str, taken: str) -> str:
    """Return a text that takes the second network out of what the loader gives in another way."""
    return text.replace(_SECOND, _SECOND.replace("    net, names = load(8)\n", taken))


def _wrapped(text: str) -> str:
    """Return a text that hands the second network to a helper, which gives it back."""
    helper = """def ready(net, many):
    inner = net.module if hasattr(net, "module") else net
    if many:
        net = nn.DataParallel(inner)
    return net.to("cpu")

def load(width):
"""
    text = text.replace("def load(width):\n", helper).replace(
        "import load\n", "import load, ready\n"
    )
    return _second(text, "    net, names = load(8)\n    net = ready(net, cfg.many)\n")


TAKEN_APART = (
    Training(
        "a network made since that comes with its names",
        files(_BEFORE),
        files(_AFTER),
        {"cast at every level": ((_ONE, _ANY),)},
    ),
    *(
        Training(
            f"a network made since that comes with its names: {taken.strip()}",
            files(_second(_BEFORE, taken)),
            files(_second(_AFTER, taken)),
            {"cast at every level": ((_ONE, _ANY),)},
        )
        for taken in (
            "    net, *others = load(8)\n",
            "    both = load(8)\n    net, names = both\n",
            "    net = load(8)[0]\n",
            "    (net, names), width = load(8), 8\n",
        )
    ),
    Training(
        "a network made since that a helper wraps where it is asked to",
        files(_wrapped(_BEFORE)),
        files(_wrapped(_AFTER)),
        {"cast at every level": ((_ONE, _ANY),)},
    ),
    Training(
        "a network that was initialized and comes with its names again",
        files(_BEFORE.replace(_MAKES, _KEEPS)),
        files(_AFTER.replace(_MAKES, _KEEPS).replace(_ONE, _ANY)),
        {"never cast": ((f", torch.cuda.amp.autocast({_ANY})", ""),)},
    ),
    Training(
        "a network made since, where a test asks for one, that a note names",
        files(_second(_BEFORE, "    if cfg.level:\n        net, names = load(8)\n")),
        files(
            _second(_AFTER, "    if cfg.level:\n        net, names = load(8)\n").replace(_ONE, _ANY)
        ),
        {},
        (("AMP123", "run.py", 14, 14, True),),
    ),
)
