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


class TestOverflow:
    """Skipped steps."""

    @pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
    def test_the_step_is_skipped_once(self, value: float, amp: Any) -> None:
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

    def test_the_skip_waits_for_the_next_step(self, amp: Any) -> None:
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
    def test_one_micro_batch_skips_the_accumulated_step(
        self, which: tuple[int, ...], amp: Any
    ) -> None:
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

    def test_every_optimizer_of_the_block_skips(self, amp: Any) -> None:
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

    def test_an_optimizer_outside_the_block_steps(self, amp: Any) -> None:
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

    def test_a_skipped_step_refuses_closures(self, amp: Any) -> None:
        """RuntimeError, and the skip stays pending."""
        model, optimizer = _start(amp)
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            put_inf(model)
        with pytest.raises(RuntimeError, match="closure"):
            optimizer.step(lambda: None)
        optimizer.step()
        assert model.weight.tolist() == [[1.0, 1.0]]

    def test_a_static_scale_never_skips(self, amp: Any) -> None:
        """The infinity reaches the weights and the scale stays."""
        model, optimizer = _start(amp, loss_scale=128.0)
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            put_inf(model)
        optimizer.step()
        assert not torch.isfinite(model.weight).all()
        assert _scaler(amp).loss_scale() == 128.0
        assert _scaler(amp)._unskipped == 1

    def test_delay_overflow_check_never_skips(self, amp: Any) -> None:
        """Nor moves the scale."""
        model, optimizer = _start(amp)
        with amp.scale_loss(_loss(model), optimizer, delay_overflow_check=True) as scaled:
            scaled.backward()
            put_inf(model)
        optimizer.step()
        assert not torch.isfinite(model.weight).all()
        assert _scaler(amp).loss_scale() == S
        assert _scaler(amp)._unskipped == 0

    def test_an_exception_inside_leaves_the_gradients_aside(self, amp: Any) -> None:
        """There is no finally: what was put aside is gone."""
        model, optimizer = _start(amp)
        model.weight.grad = torch.ones(1, 2)
        with pytest.raises(KeyError), amp.scale_loss(_loss(model), optimizer):
            raise KeyError
        assert model.weight.grad is None
        assert _scaler(amp)._unskipped == 0

    def test_schedulers_cannot_be_made_while_a_skip_waits(self, amp: Any) -> None:
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
