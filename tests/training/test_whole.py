"""Counters of micro-batches: a remainder by 1 is 0 of whole numbers, and of those alone."""

from __future__ import annotations

import pytest

from amp_migrate import migrate_source

_PROGRAM = """\
import torch
from apex import amp


def clear(optimizer, number{default}):
    if {test}:
        optimizer.zero_grad()


def train(model, batches, losses):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    number = done = 0
    for {turn} in {over}:
        loss = torch.nn.functional.mse_loss(model(x), x)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
        clear(optimizer, {given})
        done += {more}
"""


def _piles_up(
    *,
    default: str = ", every=1",
    test: str = "number % every == 0",
    turn: str = "number, x",
    over: str = "enumerate(batches)",
    given: str = "number",
    more: str = "1",
) -> bool:
    text = _PROGRAM.format(default=default, test=test, turn=turn, over=over, given=given, more=more)
    return "AMP204" in {f.code for f in migrate_source(text).findings}


@pytest.mark.parametrize(
    ("turn", "over", "given", "more"),
    [
        ("number, x", "enumerate(batches)", "number", "1"),
        ("number, x", "enumerate(batches, 1)", "number + 1", "1"),
        ("x", "batches", "done", "1"),
        ("x", "batches", "done", "len(x)"),
        ("x", "batches", "done", "2 * 8"),
        ("x", "batches", "int(x.sum())", "1"),
    ],
)
def test_whole_numbers_are_cleared_at_each(turn: str, over: str, given: str, more: str) -> None:
    """Nothing piles up where every number is one at which the helper clears."""
    assert not _piles_up(turn=turn, over=over, given=given, more=more)


@pytest.mark.parametrize(
    ("turn", "over", "given", "more"),
    [
        ("number, x", "zip(losses, batches)", "number", "1"),
        ("number, x", "enumerate(batches)", "number / 4", "1"),
        ("x", "batches", "done", "0.25"),
        ("x", "batches", "done", "x.mean()"),
    ],
)
def test_other_numbers_may_have_a_rest(turn: str, over: str, given: str, more: str) -> None:
    """What may lie between two whole numbers is not cleared at each."""
    assert _piles_up(turn=turn, over=over, given=given, more=more)


@pytest.mark.parametrize(
    ("default", "test", "piles"),
    [
        (", *, every=1", "not number % every", False),
        (", every=1", "(number + 1) % every == 0", False),
        (", every=1", "number % every == every - 1", False),
        (", every=None", "every is None or number % every == 0", False),
        (", every=2", "number % every == 0", True),
        (", every=1", "number % every == 1", True),
    ],
)
def test_a_default_is_what_a_helper_counts_by(default: str, test: str, piles: bool) -> None:
    """A call that says nothing clears as the default says."""
    assert _piles_up(default=default, test=test) is piles
