"""What the graph claims, held against runs of random control flow."""

from __future__ import annotations

import pytest

from amp_migrate.flow.cfg.build import build
from tests.flow.against import check
from tests.flow.skeleton import skeleton
from tests.flow.tape import Tape, Trace, bound, compiled

RAISING = (0.0, 0.03, 0.1)


def runs(code: object, seed: int, count: int) -> list[Trace]:
    """Return the traces of a skeleton under `count` tapes."""
    tapes = (Tape(1000 * seed + k, 40, RAISING[k % 3]) for k in range(count))
    return [tape.run(bound(code, tape)) for tape in tapes]


@pytest.mark.parametrize("start", range(0, 300, 25))
def test_no_run_refutes_the_graph(start: int) -> None:
    for seed in range(start, start + 25):
        text = skeleton(seed)
        function, code = compiled(text)
        wrong = check(build(function), runs(code, seed, 18))
        assert not wrong, f"seed {seed}: {wrong[:3]}\n{text}"
