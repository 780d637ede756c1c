"""Losses of networks that a function makes for each of several programs, or calls: they are one network each time."""

from __future__ import annotations

from check.trainings.planted import Training

_BUILD = """import torch
from torch import nn
from apex import amp


def build():
    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optim = amp.initialize(model, optim, opt_level="O1")
    return model, criterion, optim
"""
_TRAIN = """import torch
from apex import amp


def train(model, criterion, optim, batches):
    for x, y in batches:
        optim.zero_grad()
        logits = model(x)
        if not torch.isfinite((loss := criterion(logits, y))):
            continue
        with amp.scale_loss(loss, optim) as scaled_loss:
            scaled_loss.backward()
        optim.step()
"""
_IN_A_TEST = """        logits = model(x)
        if not torch.isfinite((loss := criterion(logits, y))):
            continue
"""
_BLOCK = """        with torch.cuda.amp.autocast():
            logits = model(x)
            if not torch.isfinite((loss := criterion(logits, y))):
                continue
"""
_FORWARD_ALONE = """        with torch.cuda.amp.autocast():
            logits = model(x)
        if not torch.isfinite((loss := criterion(logits, y))):
            continue
"""
_WAYS = {
    "a partial and a star": (
        "from functools import partial\n",
        "    make = partial(build)\n    held = list(make())\n    train(*held, batches=batches, scaler=parts.scaler)\n",
    ),
    "a partial that is taken apart": (
        "from functools import partial\n",
        "    make = partial(build)\n    model, criterion, optim = make()\n"
        "    train(model, criterion, optim, batches, scaler=parts.scaler)\n",
    ),
    "a list": (
        "",
        "    model, criterion, optim = build()\n    held = [model, criterion, optim]\n"
        "    train(*held, batches=batches, scaler=parts.scaler)\n",
    ),
    "a dictionary of keywords": (
        "",
        "    model, criterion, optim = build()\n    held = dict(model=model, criterion=criterion, optim=optim)\n"
        "    train(**held, batches=batches, scaler=parts.scaler)\n",
    ),
    "a table of functions": (
        "",
        '    model, criterion, optim = TABLE["build"]()\n'
        '    TABLE["train"](model, criterion, optim, batches, scaler=parts.scaler)\n',
    ),
}


def _script(imports: str, body: str, *, migrated: bool) -> str:
    text = imports + "from loop import train\nfrom parts import build\n"
    text += "import parts\n" if migrated else ""
    text += '\nTABLE = {"build": build, "train": train}\n\n\ndef main(batches):\n' + body
    text = text + "\n\nmain([])\n"
    return text if migrated else text.replace(", scaler=parts.scaler", "")


def _training(name: str) -> Training:
    imports, body = _WAYS[name]
    scripts = ("first.py", "second.py")
    before = {s: _script(imports, body, migrated=False) for s in scripts}
    after = {s: _script(imports, body, migrated=True) for s in scripts}
    before |= {"parts.py": _BUILD, "loop.py": _TRAIN}
    after["parts.py"] = _BUILD.replace(
        '    model, optim = amp.initialize(model, optim, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    ).replace("from apex import amp\n\n\ndef build():\n", _SCALER)
    after["loop.py"] = (
        _TRAIN.replace("from apex import amp\n", "")
        .replace("optim, batches)", "optim, batches, scaler)")
        .replace(_IN_A_TEST, _BLOCK)
        .replace(
            "        with amp.scale_loss(loss, optim) as scaled_loss:\n            scaled_loss.backward()\n        optim.step()\n",
            "        scaler.scale(loss).backward()\n        scaler.step(optim)\n        scaler.update()\n",
        )
    )
    faults = {"the loss is left in fp32": ((_BLOCK, _FORWARD_ALONE),)}
    return Training(f"a loss that comes by {name}", before, after, faults)


_SCALER = """
scaler = torch.cuda.amp.GradScaler(enabled=False)


def build():
    global scaler
"""

MADE_ANEW = tuple(map(_training, _WAYS))
