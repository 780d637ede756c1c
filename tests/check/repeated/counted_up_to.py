"""A loss scale grows after a number of steps that is no int under Apex, and must be one for a GradScaler."""

from __future__ import annotations

from check.trainings.planted import Training, files

_BEFORE = """
# file: train.py
import torch
import torch.nn.functional as F
from apex import amp


def train(net, batches, patience):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net, optimizer = amp.initialize(net, optimizer, opt_level="O1")
    amp._amp_state.loss_scalers[0]._scale_seq_len = {asked}
    for number, (x, y) in enumerate(batches):
        if number == 100:
            amp._amp_state.loss_scalers[0]._scale_seq_len = 2e3
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
"""
_AFTER = """
# file: train.py
import torch
import torch.nn.functional as F


def train(net, batches, patience):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.cuda.amp.GradScaler(growth_interval={given})
    for number, (x, y) in enumerate(batches):
        if number == 100:
            scaler.set_growth_interval(2000)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast():
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


def _counted(name: str, asked: str, given: str, faults: dict[str, str]) -> Training:
    made = f"growth_interval={given})"
    planted = {fault: ((made, f"growth_interval={text})"),) for fault, text in faults.items()}
    set_later = "set_growth_interval(2000)"
    later = {
        "a float later": ((set_later, "set_growth_interval(2e3)"),),
        "another later": ((set_later, "set_growth_interval(200)"),),
    }
    before, after = files(_BEFORE.format(asked=asked)), files(_AFTER.format(given=given))
    return Training(name, before, after, planted | later, (("AMP111", "train.py", 12),))


COUNTED_UP_TO = (
    _counted("counted up to a float", "500.0", "500", {"a float": "500.0", "another": "400"}),
    _counted(
        "counted up to what is given",
        "patience * 2",
        "int(patience * 2)",
        {"half of it": "int(patience)", "another": "400"},
    ),
)
