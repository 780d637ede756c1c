"""Code of a library that is given an optimizer, or an object that holds it, between backward and step."""

from __future__ import annotations

import pytest

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

TRAINER = """import copy
import logging
import hooks
import torch
import torch.nn as nn
import wandb
from apex import amp
from hooks import before_step

logger = logging.getLogger()


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1)
        self.model, self.optimizer = amp.initialize(self.model, self.optimizer, opt_level="O1")
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.epoch = 0
        self.seen = []

    def train(self, loader):
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            with amp.scale_loss(loss, self.optimizer) as scaled_loss:
                scaled_loss.backward()
            CALL
            self.optimizer.step()


Trainer().train([(torch.randn(2, 4), torch.randint(0, 3, (2,)))] * 3)
"""


def _after(call: str) -> str:
    text = TRAINER.replace("CALL", call)
    (outcome,) = migrate([Source.from_bytes("train.py", text.encode())], Settings()).outcomes
    assert outcome.after is not None
    return outcome.after


@pytest.mark.parametrize(
    "call",
    [
        "before_step(self)",
        "hooks.before_step(self.optimizer)",
        'hooks.run("step", trainer=self, step=i)',
        "hooks.run([self])",
        'hooks.run({"optimizer": self.optimizer})',
        "hooks.run(*[self.optimizer])",
    ],
)
def test_gradients_are_unscaled_before_it(call: str) -> None:
    """It may read gradients, which were true there under Apex."""
    lines = [line.strip() for line in _after(call).splitlines()]
    assert lines[lines.index(call) - 1] == "self.scaler.unscale_(self.optimizer)"


@pytest.mark.parametrize(
    "call",
    [
        'logger.info("%s %s", self, loss.item())',
        "print(self, self.optimizer)",
        'torch.save(self.optimizer.state_dict(), "last.pt")',
        "self.seen.append(len(self.optimizer.param_groups))",
        'hooks.report(self.optimizer.param_groups[0]["lr"])',
        "hooks.report(self.epoch, self.seen, loss.item())",
        'wandb.log({"loss": loss.item(), "epoch": self.epoch})',
        "hooks.see(x, y, i)",
        "self.scheduler.step()",
        "copy.copy(self)",
    ],
)
def test_what_reads_none_is_left_alone(call: str) -> None:
    """Numbers, batches, loggers, schedulers of torch and what only keeps an object need no `unscale_`."""
    assert "unscale_" not in _after(call)
