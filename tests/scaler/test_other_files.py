"""The scaler as a variable of another file: how each file that imports it has it, and which may not."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

SETUP = """import torch
from apex import amp

net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net, optimizer = amp.initialize(net, optimizer)
"""
BEGIN = """import torch
from apex import amp

def begin():
    global net, optimizer
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer)

net = optimizer = None
"""
TRAIN = """from apex import amp
IMPORT

def train(xARGS):
    loss = @net(x).mean()
    with amp.scale_loss(loss, @optimizer) as scaled:
        scaled.backward()
    @optimizer.step()

START
"""


def _train(line: str, prefix: str = "", start: str = "train([])", args: str = "") -> str:
    text = TRAIN.replace("IMPORT", line).replace("@", prefix)
    return text.replace("START", start).replace("ARGS", args)


def _after(setup: str, train: str) -> str:
    files = {"setup.py": setup, "train.py": train}
    sources = [Source.from_bytes(name, text.encode()) for name, text in files.items()]
    found = {o.path: o.after for o in migrate(sources, Settings(api="torch.cuda.amp")).outcomes}
    return found["train.py"] or ""


WAYS = {
    "by name": (SETUP, _train("from setup import net, optimizer"), "net, optimizer, scaler\n", "    scaler.scale(loss)"),
    "by star": (SETUP, _train("from setup import *"), "from setup import *\nfrom setup import scaler\n", "    scaler.scale(loss)"),
    "by star that names": (
        SETUP + "__all__ = ['net', 'optimizer']\n",
        _train("from setup import *"),
        "from setup import *\nfrom setup import scaler\n",
        "    scaler.scale(loss)",
    ),
    "through the module": (SETUP, _train("import setup", "setup."), "import setup\n", "    setup.scaler.scale(loss)"),
    "through another name": (SETUP, _train("import setup as s", "s."), "import setup as s\n", "    s.scaler.scale(loss)"),
    "under a name that is free": (
        SETUP,
        _train("from setup import net, optimizer", start="scaler = 2\ntrain(scaler)"),
        "net, optimizer, grad_scaler\n",
        "    grad_scaler.scale(loss)",
    ),
    "rebound by a function": (
        BEGIN,
        _train("import setup", "setup.", "setup.begin()\ntrain([])"),
        "import setup\n",
        "    setup.scaler.scale(loss)",
    ),
    "as a module that is imported for it": (
        BEGIN + "def both():\n    return net, optimizer\n",
        _train("from setup import begin, both", start="begin()\ntrain([], *both())", args=", net, optimizer"),
        "import setup\nfrom setup import begin, both\n",
        "    setup.scaler.scale(loss)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_another_file_has_the_scaler(way: str) -> None:
    """It is imported as the objects are that it serves."""
    setup, train, line, use = WAYS[way]
    after = _after(setup, train)
    assert line in after
    assert use in after


FUNCTION = """from apex import amp

def train(x):
    IMPORT
    loss = net(x).mean()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()

train([])
"""


def test_within_a_function() -> None:
    """An import that stands above a use in its function gives that the scaler, too."""
    after = _after(SETUP, FUNCTION.replace("IMPORT", "from setup import net, optimizer"))
    assert "    from setup import net, optimizer, scaler\n" in after


def test_below_its_use() -> None:
    """An import that need not have run where the scaler is used gives none."""
    text = FUNCTION.replace("IMPORT", "if x:\n        from setup import net, optimizer")
    assert _after(SETUP, text) == ""


LEFT = {
    "made only where its file is the program": (
        SETUP.replace("net, optimizer = amp", 'if __name__ == "__main__":\n    net, optimizer = amp'),
        _train("from setup import net, optimizer"),
    ),
    "its name is taken in the file": (
        BEGIN + "def both():\n    return net, optimizer\n",
        _train("from setup import begin, both", start="setup = begin\nsetup()\ntrain([], *both())", args=", net, optimizer"),
    ),
    "the other file imports this one": (
        "from train import train\n" + BEGIN,
        _train("from setup import begin", "setup.", "import setup\nbegin()\ntrain([])"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", LEFT)
def test_left(reason: str) -> None:
    """A variable that would be missing, hidden, or another than the one that is made, is not read."""
    assert _after(*LEFT[reason]) == ""
