"""Overflow: which steps are skipped, when, and what happens to the scale."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from reference.support import linear, put_inf, sgd

S = 2.0**16


def _start(amp: Any, level: str = "O0", **kwargs: Any) -> tuple[nn.Linear, torch.optim.SGD]:
    model = linear(1.0)
    optimizer = sgd(model)
    kwargs.setdefault("loss_scale", "dynamic")
    amp.initialize(model, optimizer, opt_level=level, verbosity=0, **kwargs)
    return model, optimizer


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value)).sum()


def _scaler(amp: Any, index: int = 0) -> Any:
    return amp._amp_state.loss_scalers[index]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_the_step_is_skipped_once(value: float, amp: Any) -> None:
    """The scale halves; the next clean step is taken."""
    model, optimizer = _start(amp)
    for good in (False, True):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            if not good:
                model.weight.grad[0, 0] = value
        result = optimizer.step()
        optimizer.zero_grad()
        assert result is None
        expected = 0.0 if good else 1.0
        assert model.weight.tolist() == [[expected, expected]]
    assert _scaler(amp).loss_scale() == S / 2
    assert _scaler(amp)._unskipped == 1


def test_the_skip_waits_for_the_next_step(amp: Any) -> None:
    """Overflow, no step, then a good batch: the good step is skipped."""
    model, optimizer = _start(amp)
    for good in (False, True):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            if not good:
                put_inf(model)
        if good:
            optimizer.step()
        optimizer.zero_grad()
    assert model.weight.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("which", [(0,), (1,), (3,), (0, 1, 2, 3)])
def test_one_micro_batch_skips_the_accumulated_step(which: tuple[int, ...], amp: Any) -> None:
    """The scale halves once per overflowing micro-batch."""
    model, optimizer = _start(amp)
    for micro in range(4):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            if micro in which:
                put_inf(model)
    optimizer.step()
    assert model.weight.tolist() == [[1.0, 1.0]]
    assert _scaler(amp).loss_scale() == S / 2 ** len(which)


def test_every_optimizer_of_the_block_skips(amp: Any) -> None:
    """Even one whose own gradients are fine."""
    models = [linear(), linear()]
    optimizers = [sgd(model) for model in models]
    amp.initialize(models, optimizers, opt_level="O0", loss_scale="dynamic")
    with amp.scale_loss(_loss(models[0]) + _loss(models[1]), optimizers) as scaled:
        scaled.backward()
        put_inf(models[0])
    for optimizer in optimizers:
        optimizer.step()
    assert [m.weight.tolist() for m in models] == [[[1.0, 1.0]]] * 2


def test_an_optimizer_outside_the_block_steps(amp: Any) -> None:
    """The decision belongs to the block."""
    models = [linear(), linear()]
    optimizers = [sgd(model) for model in models]
    amp.initialize(models, optimizers, opt_level="O0", loss_scale="dynamic")
    for index, model in enumerate(models):
        with amp.scale_loss(_loss(model), optimizers[index]) as scaled:
            scaled.backward()
            if index == 0:
                put_inf(model)
    for optimizer in optimizers:
        optimizer.step()
    assert [m.weight.tolist() for m in models] == [[[1.0, 1.0]], [[0.0, 0.0]]]


def test_a_skipped_step_refuses_closures(amp: Any) -> None:
    """RuntimeError, and the skip stays pending."""
    model, optimizer = _start(amp)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
        put_inf(model)
    with pytest.raises(RuntimeError, match="closure"):
        optimizer.step(lambda: None)
    optimizer.step()
    assert model.weight.tolist() == [[1.0, 1.0]]


def test_a_static_scale_never_skips(amp: Any) -> None:
    """The infinity reaches the weights and the scale stays."""
    model, optimizer = _start(amp, loss_scale=128.0)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
        put_inf(model)
    optimizer.step()
    assert not torch.isfinite(model.weight).all()
    assert _scaler(amp).loss_scale() == 128.0
    assert _scaler(amp)._unskipped == 1


def test_delay_overflow_check_never_skips(amp: Any) -> None:
    """Nor moves the scale."""
    model, optimizer = _start(amp)
    with amp.scale_loss(_loss(model), optimizer, delay_overflow_check=True) as scaled:
        scaled.backward()
        put_inf(model)
    optimizer.step()
    assert not torch.isfinite(model.weight).all()
    assert _scaler(amp).loss_scale() == S
    assert _scaler(amp)._unskipped == 0


def test_an_exception_inside_leaves_the_gradients_aside(amp: Any) -> None:
    """There is no finally: what was put aside is gone."""
    model, optimizer = _start(amp)
    model.weight.grad = torch.ones(1, 2)
    with pytest.raises(KeyError), amp.scale_loss(_loss(model), optimizer):
        raise KeyError
    assert model.weight.grad is None
    assert _scaler(amp)._unskipped == 0


def test_schedulers_cannot_be_made_while_a_skip_waits(amp: Any) -> None:
    """They look for a bound method."""
    model, optimizer = _start(amp)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
        put_inf(model)
    with pytest.raises(AttributeError, match="__func__"):
        torch.optim.lr_scheduler.StepLR(optimizer, 1)


def test_a_scheduler_after_a_skipped_first_step_warns(amp: Any) -> None:
    """It steps all the same; a GradScaler causes the same warning."""
    model, optimizer = _start(amp)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
        put_inf(model)
    optimizer.step()
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
