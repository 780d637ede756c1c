"""The optimizer wrapper of the pre-2019 API."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from reference.support import linear, put_inf, sgd

S = 2.0**16


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value)).sum().float()


def test_two_losses_each_with_its_scaler(amp: Any) -> None:
    """Gradients add up unscaled; the next step starts over."""
    model = linear(1.0)
    optimizer = amp.init().wrap_optimizer(sgd(model), num_loss=2)
    for _ in range(2):
        optimizer.zero_grad()
        for value in (1.0, 0.5):
            with optimizer.scale_loss(_loss(model, value) * 2.0**-8) as scaled:
                scaled.backward()
        grad = model.weight.grad[0, 0].item()
        optimizer.step()
    assert grad == 1.5 * 2.0**-8
    assert model.weight[0, 0].item() == 1.0 - 2 * grad
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_an_overflow_skips_the_step(amp: Any) -> None:
    """Of either loss."""
    model = linear(1.0)
    optimizer = amp.init().wrap_optimizer(sgd(model), num_loss=2)
    for good in (False, True):
        for index in range(2):
            with optimizer.scale_loss(_loss(model) * 2.0**-8) as scaled:
                scaled.backward()
                if not good and index == 0:
                    put_inf(model)
        optimizer.step()
        optimizer.zero_grad()
        assert (model.weight[0, 0].item() == 1.0) is not good


def test_closures_are_refused(amp: Any) -> None:
    """NotImplementedError."""
    optimizer = amp.init().wrap_optimizer(sgd(linear()))
    with pytest.raises(NotImplementedError, match="closure"):
        optimizer.step(lambda: None)


def test_a_disabled_handle_passes_everything(amp: Any) -> None:
    """The loss, the step and its closure."""
    model = linear(1.0)
    optimizer = amp.init(enabled=False).wrap_optimizer(sgd(model))
    with optimizer.scale_loss(_loss(model)) as scaled:
        scaled.backward()
    assert optimizer.step(lambda: 3.0) == 3.0
    assert model.weight[0, 0].item() == 0.0
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert len(optimizer.param_groups) == 2
