"""Weights that networks share, where what holds them is bound anew many times."""

from __future__ import annotations

from amp_migrate.engine import migrate
from amp_migrate.settings import Settings
from amp_migrate.source.file import Source

HEAD = """\
import torch
from apex import amp


class Net(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        layers = torch.nn.Linear(size, size)
"""
TAIL = """\
        self.layers = layers


def train(batches):
    model = Net(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""


def test_a_variable_bound_anew_is_followed_once() -> None:
    """Not along every order in which its values can come one after another, of which there are too many to end."""
    text = HEAD + "        layers = torch.nn.Sequential(layers, layers)\n" * 24 + TAIL
    result = migrate([Source.from_bytes("a.py", text.encode())], Settings())
    assert all(outcome.after is not None for outcome in result.outcomes)
