"""Where the scale of Apex and of a GradScaler move differently."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from amp_migrate.equivalence import reference
from reference.support import linear, put_inf, sgd
from reference.training import Program, make_scaler, train_apex

S = 2.0**16


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value)).sum()


def _started(amp: Any, loss_scale: float | str = "dynamic") -> tuple[nn.Linear, torch.optim.SGD]:
    model = linear(1.0)
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O0", loss_scale=loss_scale, verbosity=0)
    return model, optimizer


def test_the_scale_moves_per_backward(amp: Any) -> None:
    """Four overflowing micro-batches: Apex halves four times, native once."""
    overflows = tuple((0, micro) for micro in range(4))
    program = Program("O0", micro_batches=4, overflows=overflows, steps=1)
    train_apex(program, amp)
    assert amp._amp_state.loss_scalers[0].loss_scale() == S / 16
    reference.uninstall()
    model = linear()
    optimizer = sgd(model)
    scaler = make_scaler("dynamic")
    for _ in range(4):
        scaler.scale(_loss(model)).backward()
        put_inf(model)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == S / 2


@pytest.mark.parametrize(("growth", "same"), [(8, False), (2, True)])
def test_growth_is_counted_per_backward(growth: int, same: bool, amp: Any) -> None:
    """With four micro-batches a native interval of a fourth gives the same scales."""
    model, optimizer = _started(amp)
    amp._amp_state.loss_scalers[0]._scale_seq_len = 8
    apex = []
    for _ in range(6):
        for _ in range(4):
            with amp.scale_loss(_loss(model), optimizer) as scaled:
                scaled.backward()
        optimizer.step()
        optimizer.zero_grad()
        apex.append(amp._amp_state.loss_scalers[0].loss_scale())
    reference.uninstall()
    twin = linear()
    native = sgd(twin)
    scaler = make_scaler("dynamic", growth)
    scales = []
    for _ in range(6):
        for _ in range(4):
            scaler.scale(_loss(twin)).backward()
        scaler.step(native)
        scaler.update()
        native.zero_grad()
        scales.append(scaler.get_scale())
    assert (apex == scales) is same


def test_native_has_no_maximum(amp: Any) -> None:
    """Apex stops at 2**24; native needs the clamp."""
    model, optimizer = _started(amp)
    scaler = amp._amp_state.loss_scalers[0]
    scaler._scale_seq_len = 1
    for _ in range(10):
        with amp.scale_loss(_loss(model) * 0, optimizer) as scaled:
            scaled.backward()
    assert scaler.loss_scale() == 2.0**24
    reference.uninstall()
    twin = linear()
    optimizer = sgd(twin)
    native = make_scaler("dynamic", 1)
    for _ in range(10):
        native.scale(_loss(twin) * 0).backward()
        native.step(optimizer)
        native.update()
    assert native.get_scale() == 2.0**26
