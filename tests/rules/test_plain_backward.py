"""A plain backward beside a scaled one, which no step follows: what its test reads makes no difference."""

from __future__ import annotations

import pytest

from amp_migrate import migrate_source
from amp_migrate.plan.model import Status

_PROGRAM = """\
import torch
from apex import amp


def run(model, optimizer, criterion, loader, closure=None):
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in loader:
        {before}
        loss = criterion(model(x), y)
        if {test}:
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            optimizer.step()
            {behind}
        else:
            loss.backward()
        print([p.grad.norm() for p in model.parameters()])
"""
_TESTS = (
    "optimizer is not None",
    "optimizer",
    "loss is not None",
    "loss.item() > 1.0",
    "torch.isfinite(loss)",
    "model is not None",
    "model.training",
    "closure is None",
    "len(x) > 3",
    "isinstance(optimizer, torch.optim.Adam)",
)


@pytest.mark.parametrize("test", _TESTS)
def test_gradients_that_never_reach_a_step_are_left(test: str) -> None:
    """Scaled, they would be read scaled: the program is left at that backward."""
    text = _PROGRAM.format(test=test, before="model.zero_grad()", behind="pass")
    result = migrate_source(text)
    assert not result.changes
    line = text.split("\n").index("            loss.backward()") + 1
    assert ("AMP905", line) in {(f.code, f.span.line) for f in result.findings}


@pytest.mark.parametrize("test", ["loss.item() > 1.0", "len(x) > 3"])
def test_gradients_that_wait_for_a_step_are_scaled(test: str) -> None:
    """A later round adds scaled gradients to them, so they are scaled too."""
    text = _PROGRAM.format(test=test, before="pass", behind="optimizer.zero_grad()")
    text = text[: text.index("        print")]
    assert migrate_source(text).text.count("scale(loss).backward()") >= 1


_LOOP = """\
import torch
from apex import amp


class Loop:
    def __init__(self, net, optimizer, {given}):
        self.net, self.optimizer, {kept}

    def scaled(self, loss):
        with amp.scale_loss(loss, self.optimizer) as scaled_loss:
            scaled_loss.backward()

    def run(self, data):
        for x, y in data:
            loss = torch.nn.functional.mse_loss(self.net(x), y)
            if {test}:
                self.scaled(loss)
            else:
                loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()


def main(args, data, math, late):
    net = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    if {asked}:
        net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    Loop(net, optimizer, {handed}).run(data)
"""


def _noted(asked: str, given: str, handed: str, kept: str, test: str) -> bool:
    text = _LOOP.format(asked=asked, given=given, handed=handed, kept=kept, test=test)
    result = migrate_source(text)
    assert "scale(loss).backward()" in (result.text or "")
    return ("AMP116", Status.NOTE) in {(f.code, f.status) for f in result.findings}


@pytest.mark.parametrize(
    ("asked", "given", "handed", "kept", "test"),
    [
        ('math == "half"', "kind", "math", "self.kind = net, optimizer, kind", 'self.kind == "half"'),
        ("args.half", "on", "args.half", "self.on = net, optimizer, on", "self.on"),
        ("not args.full", "conf", "args", "self.conf = net, optimizer, conf", "not self.conf.full"),
        ('args.bits in (8, 16)', "n", "args.bits", "self.n = net, optimizer, n", "self.n in (8, 16)"),
    ],
)  # fmt: skip
def test_a_flag_by_another_name_is_that_flag(
    asked: str, given: str, handed: str, kept: str, test: str
) -> None:
    """Where AMP is off no loss was scaled by Apex: nothing is said of it."""
    assert not _noted(asked, given, handed, kept, test)


@pytest.mark.parametrize(
    ("asked", "given", "handed", "kept", "test"),
    [
        ("math", "late", "late", "self.late = net, optimizer, late", "self.late"),
        ('math == "half"', "kind", "math", "self.kind = net, optimizer, kind", 'self.kind != "half"'),
        ("args.half", "late", "args.late", "self.late = net, optimizer, late", "self.late"),
    ],
)  # fmt: skip
def test_another_flag_is_another(asked: str, given: str, handed: str, kept: str, test: str) -> None:
    """What asks for something else, or for the opposite, leaves out the scaling with AMP on."""
    assert _noted(asked, given, handed, kept, test)


_ATTACKED = """\
import torch
from apex import amp


def run(model, optimizer, criterion, attack, loader, args):
    model, optimizer = amp.initialize(model, optimizer, opt_level={level})
    for x, y in loader:
        loss = criterion(model(x), y)
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        attack.begin()
        other = criterion(model(x), y)
        other.backward()
        attack.end()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("level", "told"), [('"O1"', ""), ("args.level", "; at O2 it came to the fp16 gradients")]
)
def test_what_became_of_an_unscaled_loss_is_told_by_level(level: str, told: str) -> None:
    """O1 added its gradients to those of the step; O2 had them beside its masters, where no step saw them."""
    result = migrate_source(_ATTACKED.format(level=level))
    (message,) = (
        f.message for f in result.findings if f.code == "AMP116" and "not scale" in f.message
    )
    assert "small gradients were lost" in message
    assert ("at O2" in message) == bool(told)
    assert told in message
