"""Texts of several programs: each is held against what there is by itself, where something speaks against all at once."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amp_migrate.check.events.claims import Claims
from amp_migrate.check.judging import programs
from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Judgement, Objection, Texts
from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.faults import Place

_SHARED = """import torch


def fit(net, optimizer, batches):
    for x in batches:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        {}
        optimizer.step()
"""
_WITH = """with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()"""
_PROGRAM = """import torch
from shared import fit

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
{}fit(net, optimizer, torch.randn(5, 3, 4))
"""
_INITIALIZE = """from apex import amp

net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
"""
_APEX = _PROGRAM.format(_INITIALIZE)
_HELPER = _SHARED.format("from apex import amp\n\n        " + _WITH)
_BEFORE = {"shared.py": _HELPER, "one.py": _APEX, "two.py": _APEX}
_UNSCALED = {"shared.py": _SHARED.format("loss.backward()")}
_DROPPED = {"one.py": _PROGRAM.format(""), "two.py": _PROGRAM.format("")}


def _judged(before: Mapping[str, str], after: Mapping[str, str]) -> list[Objection]:
    trees = {path: Tree(path, text) for path, text in before.items()}
    return Judge(trees, build(trees)).judged(after, Claims(())).objections


def test_the_first_program_that_is_wrong_is_the_last_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It names its files, those that change in most of the programs."""
    read: list[frozenset[str]] = []
    judge = programs.judge

    def counted(old: object, built: object, texts: Texts, *rest: object) -> Judgement:
        read.append(frozenset(texts.before))
        return judge(old, built, texts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(programs, "judge", counted)
    found = _judged(_BEFORE, {**_UNSCALED, "two.py": _DROPPED["two.py"]})
    assert read == [{"shared.py", "two.py"}]
    assert {objection.program for objection in found} == {frozenset({"shared.py", "two.py"})}


def test_what_no_program_does_alone_is_no_objection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked of each program that runs the place, and of no other."""
    read: list[frozenset[str]] = []

    def sound(old: object, built: object, texts: Texts, *rest: object) -> Judgement:
        read.append(frozenset(texts.before))
        return Judgement([], [])

    monkeypatch.setattr(programs, "judge", sound)
    beside = {"beside.py": "import torch\n\nprint(torch.ones(3))\n"}
    assert _judged({**_BEFORE, **beside}, {**_UNSCALED, **_DROPPED}) == []
    assert sorted(map(sorted, read)) == [["one.py", "shared.py"], ["shared.py", "two.py"]]


def test_what_a_program_alone_does_elsewhere_is_no_objection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A function that it never runs looks as if anything might be given to it."""
    judge = programs.judge

    def elsewhere(old: object, built: object, texts: Texts, *rest: object) -> Judgement:
        made = judge(old, built, texts, *rest)  # type: ignore[arg-type]
        moved = [Objection(o.sentence, Place("far.py", 1), ()) for o in made.objections]
        return Judgement(moved, made.compared, made.project)

    assert _judged(_BEFORE, {**_UNSCALED, **_DROPPED})
    monkeypatch.setattr(programs, "judge", elsewhere)
    assert _judged(_BEFORE, {**_UNSCALED, **_DROPPED}) == []
