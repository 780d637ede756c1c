"""What the graph claims, held against runs of random control flow."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.flow import (
    NOTHING,
    Assumption,
    Known,
    Paths,
    assume,
    build,
    cautious,
    keeping,
    term,
)
from tests.flow.against import check, check_paths
from tests.flow.skeleton import skeleton
from tests.flow.tape import Tape, Trace, bound, compiled

RAISING = (0.0, 0.03, 0.1)
PLAIN_NAMES = {"p", "q", "n", "mode"}
"""The parameters of a skeleton: they hold numbers, strings and truths, which no call changes."""


def runs(code: object, seed: int, count: int) -> list[Trace]:
    """Return the traces of a skeleton under `count` tapes."""
    tapes = (Tape(1000 * seed + k, 40, RAISING[k % 3]) for k in range(count))
    return [tape.run(bound(code, tape)) for tape in tapes]


@pytest.mark.parametrize("start", range(0, 300, 25))
def test_no_run_refutes_the_graph(start: int) -> None:
    for seed in range(start, start + 25):
        text = skeleton(seed)
        function, code = compiled(text)
        wrong = check(build(function), runs(code, seed, 12))
        assert not wrong, f"seed {seed}: {wrong[:3]}\n{text}"


def given(name: str, value: object) -> Assumption:
    """Return the assumption that a parameter has a value."""
    if isinstance(value, bool):
        return assume({name: value})
    spelled = term(ast.parse(name, mode="eval").body)
    assert spelled is not None
    return NOTHING.with_fact(spelled, Known(value))


@pytest.mark.parametrize("start", range(0, 32, 8))
def test_every_run_is_feasible_under_what_it_was_given(start: int) -> None:
    for seed in range(start, start + 8):
        text = skeleton(seed)
        function, code = compiled(text)
        graph = build(function)
        traces = runs(code, seed, 24)
        name = ("p", "q", "n", "mode", "o.x")[seed % 5]
        alike: dict[str, list[Trace]] = {}
        for trace in traces:
            alike.setdefault(repr(dict(trace.given)[name]), []).append(trace)
        changes = keeping(cautious(graph), PLAIN_NAMES) if seed % 3 else cautious(graph)
        cases = [(NOTHING, traces)]
        cases += [(given(name, ast.literal_eval(value)), alike[value]) for value in alike]
        for assumption, some in cases:
            wrong = check_paths(Paths(graph, assumption, changes=changes), some)
            assert not wrong, f"seed {seed}, {assumption}: {wrong[:3]}\n{text}"
