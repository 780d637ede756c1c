"""Losses that partial objects hand to the function which runs their backward."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.protocol.code.program import program_of
from tests.project.helpers import Case

_HELPER = """\
from functools import partial
import functools


def send(half, loss, optimizer, **how):
    if half:
        loss = loss * 2
    loss.backward(**how)


"""
_GIVEN = {
    "behind what it was made with": "back = partial(send, half)\n    back(net(x).mean(), optimizer)",
    "by its name": "back = functools.partial(send, True, optimizer=optimizer)\n    back(loss=net(x).mean())",
    "in a variable": "back = partial(send, half)\n    loss = net(x).mean()\n    back(loss, optimizer, retain_graph=True)",
    "at once": "partial(send, half)(net(x).mean(), optimizer)",
}
_NOT_GIVEN = {
    "another argument": "back = partial(send, half)\n    back(x, net(x).mean())",
    "never called": "back = partial(send, half)\n    print(net(x).mean())",
    "of another function": "back = partial(print, half)\n    back(net(x).mean())",
}


def _computes(body: str) -> bool:
    """Tell whether a mean is known to compute a loss of a backward."""
    case = Case({"train.py": f"{_HELPER}def main(net, x, optimizer, half):\n    {body}\n"})
    losses = program_of(case.project).training.losses
    return any(
        isinstance(n, ast.Call) and ast.unparse(n.func).endswith(".mean") for n in losses.computing
    )


@pytest.mark.parametrize("body", _GIVEN.values(), ids=_GIVEN)
def test_loss_given_to_a_partial_object(body: str) -> None:
    """What a call of the object adds to its arguments is the loss of the function."""
    assert _computes(body)


@pytest.mark.parametrize("body", _NOT_GIVEN.values(), ids=_NOT_GIVEN)
def test_no_loss_given_to_a_partial_object(body: str) -> None:
    """Nothing else is one."""
    assert not _computes(body)
