"""A plain backward beside a scaled one, which no step follows: what its test reads makes no difference."""

from __future__ import annotations

import pytest

from amp_migrate import migrate_source

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
