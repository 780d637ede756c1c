"""The scale_loss block: what it yields, leaves in the gradients and decides about the step."""

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


def test_before_initialize(amp: Any) -> None:
    """RuntimeError on entry."""
    with (
        pytest.raises(RuntimeError, match="has not been initialized"),
        amp.scale_loss(torch.ones(1), None),
    ):
        pass


def test_yields_the_scaled_fp32_loss(amp: Any) -> None:
    """Also of fp16 losses and of vectors, which would overflow in fp16."""
    model, optimizer = _start(amp)
    loss = (model(torch.ones(3, 2)) * 2).half().flatten()
    with amp.scale_loss(loss, optimizer) as scaled:
        assert scaled.dtype == torch.float32
        assert scaled.tolist() == [4 * S] * 3
        scaled.sum().backward()


def test_gradients_are_scaled_inside_and_unscaled_after(amp: Any) -> None:
    """The block is the boundary."""
    model, optimizer = _start(amp)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
        assert model.weight.grad.tolist() == [[S, S]]
    assert model.weight.grad.tolist() == [[1.0, 1.0]]


def test_static_scale_one_is_a_short_cut(amp: Any) -> None:
    """The loss in fp32, no stash, no check, nothing counted."""
    model, optimizer = _start(amp, loss_scale=1.0)
    with amp.scale_loss(_loss(model).half(), optimizer) as scaled:
        assert scaled.item() == 2.0
        assert scaled.dtype == torch.float32
        scaled.backward()
        put_inf(model)
    optimizer.step()
    assert not torch.isfinite(model.weight).all()
    assert _scaler(amp)._unskipped == 0


def test_backwards_accumulate(amp: Any) -> None:
    """Earlier gradients wait, unscaled, and are added."""
    model, optimizer = _start(amp)
    for value in (1.0, 2.0, 4.0):
        with amp.scale_loss(_loss(model, value), optimizer) as scaled:
            assert model.weight.grad is None
            scaled.backward()
    assert model.weight.grad.tolist() == [[7.0, 7.0]]
    assert _scaler(amp)._unskipped == 3


@pytest.mark.parametrize("first", [True, False])
def test_an_unscaled_backward_is_kept(first: bool, amp: Any) -> None:
    """A regularizer without scale_loss, before or after the block, counts fully."""
    model, optimizer = _start(amp)
    if first:
        _loss(model, 3.0).backward()
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
    if not first:
        _loss(model, 3.0).backward()
    assert model.weight.grad.tolist() == [[4.0, 4.0]]


def test_parameters_without_gradients(amp: Any) -> None:
    """Some or all of them: nothing to do, and no error."""
    model, other = linear(), linear()
    optimizer = sgd(model, other)
    amp.initialize(model, optimizer, opt_level="O0", loss_scale="dynamic")
    other.weight.grad = torch.ones(1, 2)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
    assert other.weight.grad.tolist() == [[1.0, 1.0]]
    optimizer.zero_grad()
    with amp.scale_loss(torch.ones(1, requires_grad=True).sum(), optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    assert _scaler(amp)._unskipped == 2


class TestDelayUnscale:
    """Scaled gradients accumulate until a block without it."""

    def test_gradients_stay_scaled(self, amp: Any) -> None:
        """No unscale, no check, no count."""
        model, optimizer = _start(amp)
        with amp.scale_loss(_loss(model), optimizer, delay_unscale=True) as scaled:
            scaled.backward()
            put_inf(model)
        assert model.weight.grad[0, 1].item() == S
        assert _scaler(amp)._unskipped == 0
        assert _scaler(amp).loss_scale() == S

    def test_the_closing_block_unscales_the_sum(self, amp: Any) -> None:
        """It puts nothing aside."""
        model, optimizer = _start(amp)
        for value, delay in ((1.0, True), (2.0, True), (4.0, False)):
            with amp.scale_loss(_loss(model, value), optimizer, delay_unscale=delay) as scaled:
                scaled.backward()
        assert model.weight.grad.tolist() == [[7.0, 7.0]]
        assert _scaler(amp)._unskipped == 1

    def test_an_earlier_overflow_is_found_in_the_sum(self, amp: Any) -> None:
        """The step is skipped and the scale halved once."""
        model, optimizer = _start(amp)
        for delay in (True, False):
            with amp.scale_loss(_loss(model), optimizer, delay_unscale=delay) as scaled:
                scaled.backward()
                if delay:
                    put_inf(model)
        optimizer.step()
        assert model.weight.tolist() == [[1.0, 1.0]]
        assert _scaler(amp).loss_scale() == S / 2

    def test_a_step_without_the_closing_block(self, amp: Any) -> None:
        """It uses the scaled gradients."""
        model, optimizer = _start(amp)
        with amp.scale_loss(_loss(model), optimizer, delay_unscale=True) as scaled:
            scaled.backward()
        optimizer.step()
        assert model.weight.tolist() == [[1.0 - S, 1.0 - S]]


class TestSeveralLosses:
    """One scaler, or one per loss."""

    def test_loss_ids(self, amp: Any) -> None:
        """Each loss moves its own scale; an overflow of either skips the step."""
        model, optimizer = _start(amp, num_losses=2)
        for index in range(2):
            with amp.scale_loss(_loss(model), optimizer, loss_id=index) as scaled:
                scaled.backward()
                if index == 1:
                    put_inf(model)
        optimizer.step()
        assert [_scaler(amp, i).loss_scale() for i in range(2)] == [S, S / 2]
        assert model.weight.tolist() == [[1.0, 1.0]]

    def test_scales_may_differ(self, amp: Any) -> None:
        """Each backward is unscaled by its own."""
        model, optimizer = _start(amp, num_losses=2)
        _scaler(amp, 1)._loss_scale = 4.0
        for index in range(2):
            with amp.scale_loss(_loss(model), optimizer, loss_id=index) as scaled:
                scaled.backward()
        assert model.weight.grad.tolist() == [[2.0, 2.0]]

    def test_too_high_an_id(self, amp: Any) -> None:
        """IndexError."""
        model, optimizer = _start(amp)
        with pytest.raises(IndexError), amp.scale_loss(_loss(model), optimizer, loss_id=1):
            pass

    def test_retained_graphs(self, amp: Any) -> None:
        """Two losses over one forward."""
        model, optimizer = _start(amp)
        output = model(torch.ones(1, 2))
        with amp.scale_loss(output.sum(), optimizer) as scaled:
            scaled.backward(retain_graph=True)
        with amp.scale_loss((2 * output).sum(), optimizer) as scaled:
            scaled.backward()
        assert model.weight.grad.tolist() == [[3.0, 3.0]]


def test_a_tuple_of_optimizers_unscales_twice(amp: Any) -> None:
    """Earlier gradients are not put aside, so they are divided again: an Apex fault."""
    model, optimizer = _start(amp, loss_scale=4.0)
    for _ in range(2):
        with amp.scale_loss(_loss(model), (optimizer,)) as scaled:
            scaled.backward()
    assert model.weight.grad.tolist() == [[1.25, 1.25]]


def test_the_model_argument_is_unused(amp: Any) -> None:
    """It may be anything."""
    model, optimizer = _start(amp)
    with amp.scale_loss(_loss(model), optimizer, model=object()) as scaled:
        scaled.backward()
    assert model.weight.grad.tolist() == [[1.0, 1.0]]


def test_added_parameter_groups_are_unscaled_too(amp: Any) -> None:
    """In every container add_param_group takes; a set is refused."""
    model, optimizer = _start(amp)
    late = [linear(), linear()]
    optimizer.add_param_group({"params": late[0].weight, "lr": 0.5})
    optimizer.add_param_group({"params": late[1].parameters()})
    with pytest.raises(TypeError, match="ordered collections"):
        optimizer.add_param_group({"params": {nn.Parameter(torch.ones(1))}})
    total = _loss(model) + sum(_loss(layer) for layer in late)
    with amp.scale_loss(total, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    assert [layer.weight[0, 0].item() for layer in late] == [0.5, 0.0]
