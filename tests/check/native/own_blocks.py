"""Autocast blocks of the source: Apex cast in them whatever they said, and they cast where Apex was off."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from torch import nn
from apex import amp


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        with torch.cuda.amp.autocast(enabled=HEAD):
            return self.linear(x)


def score(options, model, x, y):
    with torch.no_grad(), torch.cuda.amp.autocast(SCORE):
        return nn.functional.mse_loss(model(x), y).item()


def train(options, loader):
    model = Head()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    if options.amp:
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=options.native):
            loss = nn.functional.mse_loss(model(x), y)
        if options.amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()
        print(score(options, model, x, y))
"""
_AFTER = """import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        with torch.cuda.amp.autocast(enabled=HEAD):
            return self.linear(x)


def score(options, model, x, y):
    with torch.no_grad(), torch.cuda.amp.autocast(SCORE):
        return nn.functional.mse_loss(model(x), y).item()


def train(options, loader):
    model = Head()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=options.amp)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=options.native or options.amp):
            loss = nn.functional.mse_loss(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(score(options, model, x, y))
"""
_NOTED = (("AMP124", "train.py", 12, 13, True),)
_TRAINED = "autocast(enabled=options.native or options.amp)"


def _filled(text: str, head: str, score: str) -> dict[str, str]:
    return {"train.py": text.replace("HEAD", head).replace("SCORE", score)}


def _blocks(name: str, score: str, now: str, **faults: tuple[str, str]) -> Training:
    table = {what.replace("_", " "): (edit,) for what, edit in faults.items()}
    before, after = _filled(_BEFORE, "True", score), _filled(_AFTER, "True", now)
    return Training(name, before, after, table)


OWN_BLOCKS = (
    _blocks(
        "blocks of the source under flags of their own",
        "enabled=options.quick",
        "enabled=options.quick or options.amp",
        the_evaluation_asks_its_own_flag_alone=(
            "enabled=options.quick or options.amp",
            "enabled=options.quick",
        ),
        the_evaluation_asks_for_Apex_alone=(
            "enabled=options.quick or options.amp",
            "enabled=options.amp",
        ),
        the_training_asks_its_own_flag_alone=(_TRAINED, "autocast(enabled=options.native)"),
        the_training_asks_for_Apex_alone=(_TRAINED, "autocast(enabled=options.amp)"),
        the_training_asks_for_another=(
            _TRAINED,
            "autocast(enabled=options.native or options.quick)",
        ),
    ),
    _blocks(
        "a block of the source that is always on",
        "",
        "",
        another_stands_in_it=(
            "autocast():",
            "autocast(), torch.cuda.amp.autocast(enabled=options.amp):",
        ),
        it_goes=("torch.no_grad(), torch.cuda.amp.autocast():", "torch.no_grad():"),
    ),
    Training(
        "a layer that native AMP leaves in fp32, as a note says",
        _filled(_BEFORE, "False", "enabled=options.quick"),
        _filled(_AFTER, "False", "enabled=options.quick or options.amp"),
        {},
        _NOTED,
    ),
)


def _timed(text: str) -> dict[str, str]:
    """Return a text in which the layer stands in another context that is off."""
    opened = text.replace("torch.cuda.amp.autocast(enabled=HEAD)", "Timed('head', enabled=False)")
    timed = "\n\n".join(("from profiling import Timed", opened))
    return _filled(timed, "", "enabled=options.quick")


OTHER_CONTEXTS = Training(
    "a layer in a context of a library that is off and casts nothing",
    _timed(_BEFORE),
    _timed(_AFTER.replace("autocast(SCORE)", "autocast(SCORE or options.amp)")),
    {},
)
LEFT_IN_FP32 = (
    Training(
        "a layer that native AMP leaves in fp32, and nothing says so",
        _filled(_BEFORE, "False", "enabled=options.quick"),
        _filled(_AFTER, "False", "enabled=options.quick or options.amp"),
        {},
    ),
)

_OVER = """import torch
from torch import nn
IMPORT

def losses(model, x, y):
    return nn.functional.mse_loss(model(x), y)


def train(options, model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    MAKE
    for x, y in loader:
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=SWITCH):
            loss = losses(model, x, y)
        BACKWARD
"""
_BACKWARD = """if options.amp:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
        else:
            loss.backward()
        optimizer.step()"""


def _over(given: str, make: str, switch: str, backward: str) -> dict[str, str]:
    parts = {"IMPORT": given, "MAKE": make, "SWITCH": switch, "BACKWARD": backward}
    text = _OVER
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return {"train.py": text}


OVER_A_CALL = Training(
    "a block of the source around what runs the network",
    _over(
        "from apex import amp\n",
        "if options.amp:\n        model, optimizer = amp.initialize(model, optimizer)",
        "options.native",
        _BACKWARD,
    ),
    _over(
        "",
        "scaler = torch.cuda.amp.GradScaler(enabled=options.amp)",
        "options.native or options.amp",
        "scaler.scale(loss).backward()\n        scaler.step(optimizer)\n        scaler.update()",
    ),
    {
        "it is on where Apex was alone": (
            ("enabled=options.native or options.amp", "enabled=options.amp"),
        ),
        "it is on always": (("enabled=options.native or options.amp", "enabled=True"),),
    },
)
