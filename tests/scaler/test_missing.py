"""Scalers of objects that may be None: a test above says that the object is there, or the function takes one itself."""

from __future__ import annotations

import pytest

from amp_migrate.engine import Result, migrate
from amp_migrate.plan.model import Status
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

PROGRAM = """\
from torch import nn

from apex import amp

LEVEL = "O1"


class Descent:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.step()


class Loss:
    def __init__(self, network, descent=None):
        self.network = network
        self.descent = descent

    def __call__(self, inputs, labels):
        ABOVE
        loss = nn.functional.cross_entropy(self.network(inputs), labels)
        BELOW
        self.descent.optimizer.zero_grad()
        with amp.scale_loss(loss, self.descent.optimizer) as scaled_loss:
            scaled_loss.backward()
        self.descent.step()
        return loss.item()


def main(network, optimizer, train, level=LEVEL):
    network, optimizer = amp.initialize(network, optimizer, opt_level=level)
    compute = Loss(network, Descent(optimizer))
    for inputs, labels in train:
        compute(inputs, labels)
    Loss(network)
"""
PASSES = (
    "self.descent is None",
    "not self.descent",
    "self.descent is None or len(labels) < 2",
    "not (self.descent is not None and len(labels) > 2)",
    "not self.descent or not self.descent.optimizer",
)
STAYS = (
    "self.descent is None and len(labels) < 2",
    "not (self.descent is not None or len(labels) > 2)",
)


def _result(test: str, place: str, then: str = "return 0.0") -> Result:
    """Return what becomes of the program with a test above or below the forward."""
    leaves = f"if {test}:\n            {then}"
    texts = {"ABOVE": "pass", "BELOW": "pass", place: leaves}
    text = PROGRAM
    for mark, with_it in texts.items():
        text = text.replace(mark, with_it)
    return migrate([Source.from_bytes("train.py", text.encode())], Settings())


def _left(test: str, place: str, then: str = "return 0.0") -> list[str]:
    findings = _result(test, place, then).plan.findings()
    return [f.code for f in findings if f.status is Status.LEFT]


def _migrated(test: str, place: str, then: str = "return 0.0") -> str:
    assert _left(test, place, then) == []
    after = _result(test, place, then).outcomes[0].after
    assert after is not None
    return after


def _asks_the_object(after: str) -> bool:
    """Tell whether autocast asks the scaler of the object, and not one that the function takes beside it."""
    own, beside = "self.descent.scaler.is_enabled()" in after, "descent=None, *, scaler" in after
    assert own is not beside
    return own


@pytest.mark.parametrize("test", PASSES)
def test_a_test_above_says_that_the_object_is_there(test: str) -> None:
    assert _asks_the_object(_migrated(test, "ABOVE"))


@pytest.mark.parametrize("test", PASSES)
def test_a_test_below_shows_that_it_may_be_missing(test: str) -> None:
    """Autocast would ask the scaler of an object that is not there."""
    assert "AMP901" in _left(test, "BELOW")


@pytest.mark.parametrize("place", ["ABOVE", "BELOW"])
@pytest.mark.parametrize("test", STAYS)
def test_a_test_that_lets_none_through(test: str, place: str) -> None:
    """The function takes the scaler itself."""
    assert not _asks_the_object(_migrated(test, place))


@pytest.mark.parametrize("then", ["self.begin()", "self.descent = Descent(make())"])
def test_what_is_made_where_it_is_missing_is_there(then: str) -> None:
    assert _left("self.descent is None", "ABOVE", then) == []


def test_a_word_about_what_is_missing_makes_nothing() -> None:
    assert not _asks_the_object(_migrated("self.descent is None", "ABOVE", 'print("none")'))
