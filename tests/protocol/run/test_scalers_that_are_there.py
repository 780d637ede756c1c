"""Whether a GradScaler is there is one thing all along a run, whichever functions ask or use it."""

from __future__ import annotations

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.check import faults

_TEXT = """
import torch


class Runner:
    def __init__(self, args, net, aux):
        self.net, self.aux = net, aux
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        self.aux_optimizer = torch.optim.SGD(aux.parameters(), lr=0.1)
        self.scaler = torch.cuda.amp.GradScaler()
        self.extra = None
        if args.extra:
            self.extra = torch.cuda.amp.GradScaler()

    def backward(self, loss):
        {backward}

    def step(self):
        {step}

    def run(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            self.aux_optimizer.zero_grad()
            self.scaler.scale((self.net(x) - y).abs().mean()).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.backward((self.aux(x) - y).abs().mean())
            self.step()


def main(args, batches):
    Runner(args, torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)).run(batches)
"""
_SCALED = "self.extra.scale(loss).backward()"
_STEPPED = "self.extra.step(self.aux_optimizer)\n            self.extra.update()"
_BACKWARD = f"""if self.extra is not None:
            {_SCALED}
        else:
            loss.backward()"""
_STEP = f"""if self.extra is not None:
            {_STEPPED}
        else:
            self.aux_optimizer.step()"""
_TURNED = f"""if self.extra is None:
            {_STEPPED}
        else:
            self.aux_optimizer.step()"""


def _said(backward: str, step: str) -> list[str]:
    text = _TEXT.format(backward=backward, step=step)
    return [fault.breach.name for fault in faults(build({"run.py": Tree("run.py", text)}))]


@pytest.mark.parametrize(
    ("backward", "step"),
    [(_BACKWARD, _STEP), (_SCALED, _STEP), (_BACKWARD, _STEP.replace(" is not None", ""))],
)
def test_what_one_function_learns_holds_in_the_next_one(backward: str, step: str) -> None:
    """Tests agree, and a method that is called is one of a GradScaler that is there."""
    assert _said(backward, step) == []


@pytest.mark.parametrize(
    ("backward", "step"),
    [
        (_BACKWARD, _TURNED),
        (_SCALED, "self.aux_optimizer.step()"),
        (_BACKWARD, "self.aux_optimizer.step()"),
    ],
)
def test_a_step_the_other_way_is_seen(backward: str, step: str) -> None:
    """A plain step on scaled gradients is wrong wherever the GradScaler is there."""
    assert _said(backward, step)
