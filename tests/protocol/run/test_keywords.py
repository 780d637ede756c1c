"""What functions are given in dictionaries and unpack: each call says it of itself, whichever call comes first."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults
from amp_migrate.protocol.faults import Breach

_TEXT = """
import copy

import torch

net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()


def finish(name, update={default}):
    scaler.step(optimizer)
    if update:
        scaler.update()


{wrapper}


def loss(x, y):
    optimizer.zero_grad()
    scaler.scale((net(x) - y).abs().mean()).backward()


def main(batches):
    for x, y in batches:
        loss(x, y)
        {first}
        loss(x, y)
        {second}
"""
_KWARGS = "def done(**kwargs):\n    finish(**kwargs)"
_THROUGH = f"{_KWARGS}\n\n\ndef over(**given):\n    done(**given)"
_COPIED = """def done(options):
    options = copy.deepcopy(options)
    kind = options.pop("kind")
    finish(**options)"""
_TAKEN = _COPIED.replace('"kind"', '"update"')
_CHANGED = _KWARGS.replace("    finish", '    kwargs.setdefault("name", 2)\n    finish')
_TURNED = _KWARGS.replace("    finish", '    kwargs.setdefault("update", False)\n    finish')
_ADDED = _KWARGS.replace("    finish", "    kwargs.update(added())\n    finish")
_HANDED = f"""def turn(options):
    options["update"] = False


{_KWARGS.replace("    finish", "    turn(kwargs)" + chr(10) + "    finish")}"""
_PARTIAL = "def done(*args):\n    finish(1, *args)"
_SET = _KWARGS.replace("    finish", '    kwargs["update"] = True\n    finish')
_PLACES = "def done(*args):\n    finish(*args)"


def _found(wrapper: str, first: str, second: str, default: bool = True) -> list[Breach]:
    text = _TEXT.format(wrapper=wrapper, first=first, second=second, default=default)
    return [fault.breach for fault in faults(build({"train.py": Tree("train.py", text)}))]


_ITSELF = "\n        scaler.update()"


@pytest.mark.parametrize(
    ("wrapper", "first", "second"),
    [
        (_KWARGS, "done(name=1, update=True)", "done(name=1, update=True)"),
        (_KWARGS, "done(name=1, update=True)", f"done(name=1, update=False){_ITSELF}"),
        (_KWARGS, "done(name=1)", "done(name=1, update=True)"),
        (_KWARGS, "done(name=1)", f"done(name=1, update=False){_ITSELF}"),
        (_THROUGH, "over(name=1)", f"over(name=1, update=False){_ITSELF}"),
        (
            _COPIED,
            'done({"name": 1, "update": True, "kind": 1})',
            'done({"name": 1, "update": False, "kind": 2})' + _ITSELF,
        ),
        (_SET, "done(name=1, update=True)", "done(name=1, update=False)"),
    ],
    ids=["given", "in turn", "default", "in turn", "through two", "dictionary", "set there"],
)
def test_every_step_is_updated(wrapper: str, first: str, second: str) -> None:
    """Each call is taken to be given what it is given."""
    assert Breach.STEPPED_TWICE not in _found(wrapper, first, second)


@pytest.mark.parametrize(
    ("wrapper", "first", "second"),
    [
        (_KWARGS, "done(name=1, update=True)", "done(name=1, update=False)"),
        (_KWARGS, "done(name=1)", "done(name=1, update=False)"),
        (_THROUGH, "over(name=1, update=True)", "over(name=1, update=False)"),
        (_PLACES, "done(1, True)", "done(1, False)"),
        (_PLACES, "done(1)", "done(1, False)"),
        (
            _COPIED,
            'done({"name": 1, "update": True, "kind": 1})',
            'done({"name": 1, "update": False, "kind": 2})',
        ),
        (_CHANGED, "done(name=1, update=True)", "done(name=1, update=False)"),
        (_TURNED, "done(name=1)", "done(name=1, update=True)"),
        (_HANDED, "done(name=1, update=True)", "done(name=1)"),
        (_ADDED, "done(name=1)", "done(name=1)"),
        (_KWARGS, "finish(1, **added())", "done(name=1, update=True)"),
        (_PARTIAL, "done()", "done(False)"),
    ],
    ids=[
        *("given", "default", "through two", "by place", "default by place", "dictionary"),
        *("changed", "turned off where it lacks", "changed out of hand", "added to", "read"),
        "by place behind another",
    ],
)
def test_one_call_does_not_update(wrapper: str, first: str, second: str) -> None:
    """A later call is not taken to be given what the first one was."""
    assert Breach.STEPPED_TWICE in _found(wrapper, first, second)
    assert Breach.STEPPED_TWICE in _found(wrapper, second, first)


def test_what_is_taken_out_of_a_dictionary_is_not_unpacked() -> None:
    """The default counts then."""
    given = 'done({"name": 1, "update": True})'
    assert Breach.STEPPED_TWICE in _found(_TAKEN, given, given, default=False)


_BUILT = """class Finish:
    def __init__(self, name, update):
        finish(name, update)


class Base:
    KINDS = {}

    def build(self, options):
        options = copy.deepcopy(options)
        kind = options.pop("kind")
        return self.KINDS[kind](**options)


class Finishes(Base):
    KINDS = {"plain": Finish}

    def build(self, kind, update):
        return super().build({"kind": kind, "name": 1, "update": update})


class Named(Base):
    KINDS = {"dict": dict}


build = Finishes().build
named = Named().build({"kind": "dict"})"""
_LATE = _BUILT.replace(
    "        return self", '        options["update"] = False\n        return self'
)


def test_a_builder_gives_what_each_call_of_it_is_given() -> None:
    """It takes what it makes out of its class, and unpacks a copy of the dictionary."""
    first, second = 'build("plain", True)', 'build("plain", False)'
    assert Breach.STEPPED_TWICE not in _found(_BUILT, first, first)
    assert Breach.STEPPED_TWICE not in _found(_BUILT, first, second + _ITSELF)
    assert Breach.STEPPED_TWICE in _found(_BUILT, first, second)
    assert Breach.STEPPED_TWICE in _found(_LATE, first, first)
