"""Helpers that forward whichever network they are given: two networks are two, and a part of one is a part of it."""

from __future__ import annotations

from check.trainings.planted import Training

_BEFORE = """import torch
from torch import nn
from apex import amp


def run(network, x, scale=1.0):
    return network(x * scale)


def scaled(network, x):
    return run(network, x, scale=0.5)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.body(x).relu())


class Trainer:
    def __init__(self, net, other):
        self.net = net
        self.other = other
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def losses(self, x, y):
        part = self.net.body
        with torch.no_grad():
            before = run(self.other, x)
        now = run(self.net, x)
        return nn.functional.mse_loss(now, y) + (now.mean() - before.mean()).abs()

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.losses(x, y)
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.optimizer.step()


def main():
    trainer = Trainer(Net(), Net())
    trainer.net, trainer.optimizer = amp.initialize(trainer.net, trainer.optimizer, opt_level="O1")
    for x, y in []:
        trainer.step(x, y)


main()
"""
_AFTER = (
    _BEFORE.replace("from apex import amp\n", "")
    .replace("    def step(self, x, y):", "    def step(self, x, y, scaler):")
    .replace(
        """        loss = self.losses(x, y)
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.optimizer.step()
""",
        """        with torch.cuda.amp.autocast():
            loss = self.losses(x, y)
        scaler.scale(loss).backward()
        scaler.step(self.optimizer)
        scaler.update()
""",
    )
    .replace(
        '    trainer.net, trainer.optimizer = amp.initialize(trainer.net, trainer.optimizer, opt_level="O1")\n',
        "    scaler = torch.cuda.amp.GradScaler()\n",
    )
    .replace("trainer.step(x, y)", "trainer.step(x, y, scaler)")
)
_GIVEN = "before = run(self.other, x)"
_NOW = "now = run(self.net, x)"
_BLOCK = f"            {_GIVEN}\n"
_CLEARED = f"{_BLOCK}        torch.clear_autocast_cache()\n"
_FIRST = (
    "run(self.net, x)",
    "scaled(self.net, x)",
    "run(self.net.body, x)",
    "scaled(self.net.body, x)",
    "run(part, x)",
    "scaled(part, x)",
    "run(self.net.forward, x)",
    "run(nn.DataParallel(self.net), x)",
)
_THEN = ("run(self.net, x)", "scaled(self.net, x)", "self.net(x)")


def _training(first: str, then: str) -> Training:
    edits = ((_GIVEN, f"before = {first}"), (_NOW, f"now = {then}"))
    before, after = _BEFORE, _AFTER.replace(_BLOCK, _CLEARED)
    for old, new in edits:
        before, after = before.replace(old, new), after.replace(old, new)
    fault = ("        torch.clear_autocast_cache()\n", "")
    return Training(
        f"{first} without gradients, then {then}",
        {"main.py": before},
        {"main.py": after},
        {"the copies without gradients are kept": (fault,)},
    )


_OTHERS = (
    "sum(network(x) for network in others)",
    "sum([scaled(network, x) for network in others])",
    "sum(map(lambda network: network(x), others))",
    "sum(map(lambda network: scaled(network, x), others))",
)
_LAYERS = (
    (
        "self.body = nn.Linear(4, 8)",
        "self.layers = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8)])",
    ),
    (
        "return self.head(self.body(x).relu())",
        "for layer in self.layers:\n            x = layer(x)\n        return self.head(x.relu())",
    ),
    ("part = self.net.body", "part = self.net.layers"),
)


def _shadowed(others: str, edits: tuple[tuple[str, str], ...]) -> Training:
    before, after = _BEFORE, _AFTER.replace(_BLOCK, _CLEARED)
    for old, new in (
        ("def run(network, x, scale=1.0):", "def run(network, x, others=(), scale=1.0):"),
        ("return network(x * scale)", f"return network(x * scale) + {others}"),
        (_GIVEN, "before = run(self.other, x, [self.net])"),
        *edits,
    ):
        assert old in before
        before, after = before.replace(old, new), after.replace(old, new)
    fault = ("        torch.clear_autocast_cache()\n", "")
    return Training(
        f"a variable has the name of the parameter in {others}, {len(edits)} edits",
        {"main.py": before},
        {"main.py": after},
        {"the copies without gradients are kept": (fault,)},
    )


_KEEPER = """

class Keeper:
    def __init__(self, run):
        self.run = run

    def __call__(self, x):
        return self.run(x)


class Trainer:
"""
_ONE = (
    "run(self.net.forward, x)",
    "scaled(self.net.forward, x)",
    "Keeper(self.net.forward)(x)",
    "checkpoint(self.net.forward, x)",
)


def _handed(then: str) -> Training:
    """Return a training in which nothing but a bound method of a network is handed to what runs it."""
    before, after = _BEFORE, _AFTER.replace(_BLOCK, _CLEARED)
    edits = (
        ("\n\nclass Trainer:\n", _KEEPER),
        (
            "from torch import nn\n",
            "from torch import nn\nfrom torch.utils.checkpoint import checkpoint\n",
        ),
        (_GIVEN, "before = self.net.body(x)"),
        (_NOW, f"now = {then}"),
    )
    for old, new in edits:
        before, after = before.replace(old, new), after.replace(old, new)
    cleared = ("        torch.clear_autocast_cache()\n", "")
    return Training(
        f"a part without gradients, then {then} alone",
        {"main.py": before},
        {"main.py": after},
        {
            "the copies without gradients are kept": (cleared,),
            "and the method is kept before": (
                cleared,
                (
                    f"now = {then}",
                    f"whole = self.net.forward\n        now = {then}".replace(
                        "(self.net.forward", "(whole"
                    ),
                ),
            ),
        },
    )


FORWARD_HELPERS = (
    *(_shadowed(others, edits) for others in _OTHERS for edits in ((), _LAYERS)),
    Training("a helper runs two networks", {"main.py": _BEFORE}, {"main.py": _AFTER}, {}),
    *map(_handed, _ONE),
    *(_training(first, then) for first in _FIRST for then in _THEN),
)
