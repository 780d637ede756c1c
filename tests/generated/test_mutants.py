"""Broken on purpose, the rewriter is found out by the generated programs."""

from __future__ import annotations

import pytest

from amp_migrate.check.judging.judge import Judge
from amp_migrate.check.judging.objections import Judgement
from generated.choices.features import draw
from generated.judging.check import check
from generated.judging.mutants import MUTANTS, Mutant
from generated.test_programs import PROGRAMS
from generated.written.program import build


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_broken_rewriter_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the programs of the fixed run, one shows the fault that it does not have otherwise.

    The check of the written text, which would refuse what is wrong, is out of force.
    """
    monkeypatch.setattr(Judge, "judged", lambda *_: Judgement([], []))
    monkeypatch.setattr(mutant.rule, "decide", mutant.decide())
    found = next(filter(_fails, _seeds(mutant)))
    monkeypatch.undo()
    assert not _fails(found)


def _seeds(mutant: Mutant) -> list[int]:
    """Return seeds of the fixed run, those first in which the fault can show."""
    features = {seed: draw(seed) for seed in range(PROGRAMS)}

    def misses(seed: int) -> bool:
        return any(features[seed][name] not in options for name, options in mutant.wanted.items())

    return [seed for seed in sorted(features, key=misses) if not misses(seed)]


def _fails(seed: int) -> bool:
    return check(build(draw(seed))).outcome == "failed"
