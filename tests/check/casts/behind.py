"""What is computed behind the forward passes of an evaluation, of what they gave, and networks that come out of sight."""

from __future__ import annotations

from check.trainings.planted import Training

_BEGUN = """import torch
import torch.nn.functional as F
from torch import nn
from zoo import Mirror, unwrap
"""
_BEFORE = """from apex import amp


def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
"""
_AFTER = """

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler()
    for x in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
_GATHER = ("with torch.no_grad():", "    feats = torch.cat([model(x) for x in loader])")
_CAST_GATHER = (
    "with torch.no_grad(), torch.cuda.amp.autocast():",
    "    feats = torch.cat([model(x) for x in loader])",
)
_WIDE = "feats = feats.float()"
_WAYS = {
    "normalized features": (_GATHER, _CAST_GATHER, (), "units = F.normalize(feats, dim=1)"),
    "a similarity": (_GATHER, _CAST_GATHER, (), "out = F.cosine_similarity(feats, feats)"),
    "a product of what was made fp32": (
        _GATHER,
        _CAST_GATHER,
        (_WIDE,),
        "out = torch.mm(feats, feats.t())",
    ),
    "a product with data": (
        _GATHER,
        _CAST_GATHER,
        (_WIDE,),
        "out = torch.matmul(feats, torch.randn(4, 4))",
    ),
    "a product by an operator": (_GATHER, _CAST_GATHER, (_WIDE,), "out = feats @ feats.t()"),
    "a product by a method": (_GATHER, _CAST_GATHER, (_WIDE,), "out = feats.mm(feats.t())"),
    "a product of widened rows": (_GATHER, _CAST_GATHER, (), "out = feats.float() @ torch.eye(4)"),
    "a method of what a function out of sight hands back": (
        (),
        (),
        (),
        "out = unwrap(model).scores(torch.randn(3, 4))",
    ),
    "a method of what is in a wrapper": (
        (),
        (),
        ("model = nn.DataParallel(model)",),
        "out = model.module.scores(torch.randn(3, 4))",
    ),
    "a method of what is in a wrapper, if there is one": (
        (),
        (),
        ('bare = getattr(model, "module", model)',),
        "out = bare.scores(torch.randn(3, 4))",
    ),
    "a network of a library with the weights of the trained one": (
        (),
        (),
        ("twin = Mirror()", "twin.load_state_dict(model.state_dict())"),
        "out = twin(torch.randn(3, 4))",
    ),
    "a method of a network of a library with other weights": (
        (),
        (),
        ("twin = Mirror()", 'twin.load_state_dict(torch.load("best.pt"))'),
        "out = twin.predict(torch.randn(3, 4))",
    ),
    "what a library makes of a part of the network": (
        (),
        (),
        ("model.body = nn.Linear(4, 3)", "twin = Mirror(model.body)"),
        "out = twin(torch.randn(3, 4))",
    ),
    "a network that a function out of sight hands back": (
        (),
        (),
        ("bare = unwrap(model)",),
        "out = bare(torch.randn(3, 4))",
    ),
}
_MADE = {
    "a sum of what layers in a row give": "nn.Sequential(nn.Linear(4, 3))",
    "a sum of what layers give that a method hands back": "nn.Sequential(nn.Linear(4, 3)).train()",
    "a sum of what layers give that a function makes": "made().eval()",
}


_CHOSEN = {
    "a sum of rows that scores choose": "out = feats[feats.argmax(dim=0)].sum(dim=0)",
    "a sum of what is chosen by a test": "out = (feats if len(feats) > 2 else x).sum(dim=0)",
}


def _written(lines: tuple[str, ...]) -> str:
    return "".join(f"    {line}\n" for line in lines)


def _training(name: str) -> Training:
    gather, cast, between, last = _WAYS[name]
    before = _BEGUN + _BEFORE + _written((*gather, *between, last))
    blocked = ("with torch.cuda.amp.autocast():", f"    {last}")
    after = _BEGUN + _AFTER + _written((*cast, *between, *blocked))
    faults = {"left in fp32": ((_written(blocked), _written((last,))),)}
    return Training(f"{name} behind", {"train.py": before}, {"train.py": after}, faults)


def _summed(name: str) -> Training:
    """Return a training that adds up what a network gives, which a caller makes."""
    made = "\n\ndef made():\n    return nn.Sequential(nn.Linear(4, 3))\n"
    call = f"\n\ntrain({_MADE.get(name, 'made()')}, [torch.randn(8, 4)])\n"
    last, blocked = _CHOSEN.get(name, "out = feats.sum(dim=0)"), "with torch.cuda.amp.autocast():"
    held = _written((blocked, f"    {last}"))
    before = _BEGUN + _BEFORE + _written((*_GATHER, last)) + made + call
    after = _BEGUN + _AFTER + _written(_CAST_GATHER) + held + made + call
    faults = {"left in fp16": ((held, _written((last,))),)}
    return Training(f"{name} behind", {"train.py": before}, {"train.py": after}, faults)


BEHIND = (*map(_training, _WAYS), *map(_summed, _MADE), *map(_summed, _CHOSEN))
