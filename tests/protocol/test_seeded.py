"""Faults of native AMP in the manner of real code are found, and the same programs without them accepted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from protocol.seeded_programs import Seeded, seeded

from amp_migrate.protocol.casts.machine import CastMachine, CertainCasts
from amp_migrate.protocol.casts.networks import AnyNetwork
from amp_migrate.protocol.code.span import Span
from amp_migrate.protocol.machine import Machine
from amp_migrate.protocol.run.blind import Search
from amp_migrate.protocol.run.solve import Run

LEAST = 120


def _title(program: Seeded) -> str:
    return f"{program.group}: {program.name}"


@pytest.fixture(autouse=True)
def _all_paths_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold each run along all paths at once against one that tells them apart: it shows each breach that that shows."""
    search = Search.run

    def run(self: Search, machine: Machine, span: Span) -> Run:
        apart = Run(self.program, machine, self.memory, span)
        met = {breached.sought for breached in self.anyhow(machine, span).breached()}
        assert met.issuperset(breached.sought for breached in apart.breached())
        return search(self, machine, span)

    monkeypatch.setattr(Search, "run", run)


@pytest.fixture(autouse=True)
def _networks_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the breaches of networks told apart as far as that is asked against those of networks that are all told apart."""
    anyhow = Search.anyhow

    def run(self: Search, machine: Machine, span: Span, *rest: Any) -> Run:
        found = anyhow(self, machine, span, *rest)
        if type(machine) in (CastMachine, CertainCasts):
            every = type(machine)()
            met = {breached.sought for breached in found.breached()}
            least = {b.sought for b in anyhow(self, every, self.program.span).breached()}
            assert met == least or (isinstance(machine.networks, AnyNetwork) and met > least)
        return found

    monkeypatch.setattr(Search, "anyhow", run)


@pytest.mark.parametrize("program", seeded(), ids=_title)
def test_a_seeded_fault_is_found_where_it_is(program: Seeded) -> None:
    """The fault is named at its line, and what mends it leaves nothing to say."""
    assert program.expected
    assert program.found()
    assert program.complaints() == []


def test_every_class_of_faults_has_its_programs() -> None:
    """There are enough programs in every class, and no two with the same text."""
    counts = Counter(program.group for program in seeded())
    print(*(f"{group:24} {number:3}" for group, number in sorted(counts.items())), sep="\n")
    assert counts.total() >= LEAST
    assert min(counts.values()) >= 10
    assert len({tuple(program.wrong.items()) for program in seeded()}) == counts.total()
