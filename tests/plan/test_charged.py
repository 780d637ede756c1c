"""Which program is left where the check finds something wrong in a file that nothing changes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Judgement, Objection
from amp_migrate.engine import migrate
from amp_migrate.facts.tree import Tree
from amp_migrate.plan.model import Status
from amp_migrate.protocol.faults import Place
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

TRAIN = """import torch
from apex import amp
from torch import nn
from shared import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for _ in range(6):
    loss = nn.functional.mse_loss(model(torch.randn(6, 4)).float(), torch.randn(6, 4))
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
SHARED = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x)


def norm(x):
    return x.norm()
"""
MIDDLE = """from shared import norm


class Pairs:
    def __getitem__(self, index):
        return norm(index)


def report(x):
    return norm(x)
"""
ISLAND = SHARED.replace(
    "        return self.body(x)\n",
    """        body = self.body(x)
        scores = torch.einsum("ij,kj->ik", body.float(), x.float())
        return self.body(scores @ body)
""",
)
FINISH = """

def finish(loss, optimizer):
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
"""
CALLING = TRAIN.partition("    optimizer.zero_grad()")[0].replace("Net\n", "Net, finish\n", 1)
CALLING += "    finish(loss, optimizer)\n"
CALLS = "from middle import report\n\nprint(report(torch.ones(3)))\n"
IMPORTS = "import middle\n\nprint(middle)\n"


def _left(
    monkeypatch: pytest.MonkeyPatch,
    search: str,
    wrong: Place,
    shared: str = SHARED,
    program: frozenset[str] = frozenset(),
) -> set[str]:
    """Return the files that keep Apex where `wrong` goes wrong as long as one of two programs changes."""

    def judged(
        _: Judge, after: Mapping[str, str], claims: Claims, read: Mapping[str, Tree]
    ) -> Judgement:
        objection = Objection("`norm` is not cast", wrong, (wrong,), program=program)
        found = [objection] if "search.py" in after else []
        return Judgement(found, [])

    monkeypatch.setattr(Judge, "judged", judged)
    texts = {"another.py": TRAIN, "middle.py": MIDDLE, "search.py": search, "shared.py": shared}
    sources = [Source.from_bytes(path, text.encode()) for path, text in texts.items()]
    result = migrate(sources, Settings())
    return {f.path for f in result.plan.findings() if f.status is Status.LEFT}


def test_the_program_that_calls_the_place_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of a file of both programs that one of them calls."""
    assert _left(monkeypatch, TRAIN + CALLS, Place("shared.py", 14)) == {"search.py"}


def test_the_program_that_imports_the_file_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a library calls is called by nobody in sight."""
    assert _left(monkeypatch, TRAIN + IMPORTS, Place("middle.py", 6)) == {"search.py"}


def test_what_was_left_stays_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it was one unit with what goes, as both change the network that they share."""
    wrong = Place("search.py", 13)
    assert _left(monkeypatch, TRAIN, wrong, ISLAND) == {"search.py"}


def test_of_a_file_that_both_change_the_program_is_left_that_goes_wrong() -> None:
    """Although the place itself is one of both."""
    with pytest.MonkeyPatch.context() as patched:
        wrong, program = Place("shared.py", 11), frozenset({"search.py", "shared.py"})
        assert _left(patched, TRAIN, wrong, ISLAND, program) == {"search.py"}
    with pytest.MonkeyPatch.context() as patched:
        assert _left(patched, TRAIN, wrong, ISLAND) == {"another.py", "search.py"}


def test_of_one_unit_the_program_is_left_that_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one goes with the helper of both, as the one that stays lacks the GradScaler there."""
    monkeypatch.setitem(globals(), "TRAIN", CALLING)
    wrong, program = Place("shared.py", 17), frozenset({"search.py", "shared.py"})
    assert _left(
        monkeypatch,
        CALLING,
        wrong,
        SHARED.replace("torch\n", "torch\nfrom apex import amp\n", 1) + FINISH,
        program,
    ) == {"search.py"}
