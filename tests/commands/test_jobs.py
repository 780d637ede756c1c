"""``-j``: files are rewritten and programs checked in several processes, and nothing shows it."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import fork_server
import pytest
from shell_support import amp_migrate

from amp_migrate import processes
from amp_migrate.processes import each, without_collector

PROGRAM = """\
import torch
from apex import amp

model = torch.nn.Linear(4, {outputs})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for x in [torch.randn(2, 4)]:
    loss = model(x).mean()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    {between}
    optimizer.step()
"""
CLIP = "torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)"
LEFT = "print(amp._amp_state.allow_incoming_model_not_fp32)"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four programs that have nothing to do with each other, one of which is left."""
    for n, between in enumerate(("pass", CLIP, LEFT, CLIP)):
        text = PROGRAM.format(outputs=n + 1, between=between)
        (tmp_path / f"train_{n}.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [("--diff",), ("--check", "--output-format", "json")])
def test_every_number_of_processes_gives_the_same(programs: Path, options: tuple[str, ...]) -> None:
    alone = amp_migrate(".", *options)
    assert alone.stdout

    for jobs in ("1", "2", "3", "0"):
        done = amp_migrate(".", *options, "-j", jobs)
        assert (done.stdout, done.stderr, done.exit_code) == (
            alone.stdout,
            alone.stderr,
            alone.exit_code,
        )


def test_a_negative_number_is_refused(programs: Path) -> None:
    done = amp_migrate(".", "-j", "-1")

    assert done.exit_code == 2
    assert "-1 is not in the range x>=0" in done.stderr


def test_answers_keep_their_order_and_come_from_other_processes() -> None:
    there = each(lambda n: (n * n, os.getpid()), range(5), 3)

    assert [square for square, _ in there] == [0, 1, 4, 9, 16]
    assert os.getpid() not in {process for _, process in there}
    assert {process for _, process in each(lambda n: (n, os.getpid()), range(5), 1)} == {
        os.getpid()
    }


def test_what_raises_there_raises_here() -> None:
    with pytest.raises(ValueError, match="two"):
        each(_refuse_two, [1, 2, 3], 2)


def _refuse_two(number: int) -> int:
    if number == 2:
        raise ValueError("two")
    return number


def test_what_is_made_without_the_collector_can_be_collected_later() -> None:
    """Objects that hold each other are no leak for who calls the library."""
    assert fork_server.call(_collect_later) == 0


def _collect_later() -> None:
    gc.unfreeze()
    gc.enable()
    frozen = gc.get_freeze_count()
    with without_collector():
        held = _Circle()
        alive = weakref.ref(held)
        del held
        assert alive() is not None
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    gc.collect()
    assert alive() is None


def test_runs_in_one_process_leave_no_garbage_for_good() -> None:
    """What a run leaves in circles is collected when there were runs enough for that to take little of their time."""
    assert fork_server.call(_run_often) == 0


def _run_often() -> None:
    gc.unfreeze()
    gc.enable()
    left: list[weakref.ref[_Circle]] = []
    for _ in range(processes._RUNS + 1):
        with without_collector():
            left.append(weakref.ref(_Circle()))
    assert [made() is None for made in left] == [True] * processes._RUNS + [False]


class _Circle:
    def __init__(self) -> None:
        self.itself = self
