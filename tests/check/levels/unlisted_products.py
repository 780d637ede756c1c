"""Products on no list of O1, of what a network has in fp32 at O1 alone, at levels of the command line."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """# file: model.py
import torch
from torch import nn

class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.rows = nn.Parameter(torch.randn(5, 8))

    def forward(self, x):
        asked, known = self.norm(self.inner(x)), self.norm(self.rows)
        score = torch.einsum("if,vf->iv", asked, known)
        return score
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from apex import amp
from model import Matcher

def train(args, batches):
    matcher = Matcher()
    optimizer = torch.optim.SGD(matcher.parameters(), lr=0.1)
    matcher, optimizer = amp.initialize(matcher, optimizer, opt_level=args.opt_level)
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(matcher(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O1")
train(parser.parse_args(), [])
"""
_AFTER = """# file: model.py
import torch
from torch import nn

class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.rows = nn.Parameter(torch.randn(5, 8))

    def forward(self, x):
        asked, known = self.norm(self.inner(x)), self.norm(self.rows)
        score = torch.einsum("if,vf->iv", asked, known)
        return score
# file: train.py
import argparse
import torch
import torch.nn.functional as F
from model import Matcher

def train(args, batches):
    matcher = Matcher()
    optimizer = torch.optim.SGD(matcher.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=args.opt_level != "O0")
    for x, y in batches:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=scaler.is_enabled()):
            loss = F.cross_entropy(matcher(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

parser = argparse.ArgumentParser()
parser.add_argument("--opt-level", default="O1")
train(parser.parse_args(), [])
"""
_BARE = '        score = torch.einsum("if,vf->iv", asked, known)\n'
_OFF = "        with torch.cuda.amp.autocast(enabled=False):\n    " + _BARE
_ISLAND = ((_BARE, _OFF),)
_SOME = ('default="O1"', 'default="O1", choices=["O0", "O1"]')
_BY_HAND = ("asked, known)", "asked.float(), known.float())")

UNLISTED_PRODUCTS = (
    Training(
        "a product of norms in a network at a level of the command line",
        files(_BEFORE),
        files(_AFTER),
        {"it runs in fp32 at every level": _ISLAND},
        (("AMP123", "model.py", 13, 13, True),),
    ),
    Training(
        "a product of norms in a network at one level that casts",
        files(_BEFORE.replace(*_SOME)),
        files(_AFTER.replace(*_SOME).replace(_BARE, _OFF)),
        {"it runs in fp16": ((_OFF, _BARE),)},
    ),
    Training(
        "a product of what the source makes fp32 at a level of the command line",
        files(_BEFORE.replace(*_BY_HAND)),
        files(_AFTER.replace(_BARE, _OFF).replace(*_BY_HAND)),
        {
            "it runs in fp16": ((_OFF.replace(*_BY_HAND), _BARE.replace(*_BY_HAND)),),
        },
    ),
)
