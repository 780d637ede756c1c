"""Mixed precision by hand: FP16_Optimizer, helpers and the two old loss scalers."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from reference.support import batch, linear, mlp, put_inf, sgd
from reference.training import HalfModel

HALF = torch.float16
S = 2.0**16


def _wrapped(model: nn.Module, inner: Any = None, **kwargs: Any) -> Any:
    from apex.fp16_utils import FP16_Optimizer

    return FP16_Optimizer(inner or sgd(model), verbose=False, **kwargs)


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value, dtype=HALF)).sum()


def _half_mlp() -> nn.Module:
    from apex.fp16_utils import BN_convert_float

    return BN_convert_float(mlp().half())


class TestOptimizer:
    """FP16_Optimizer."""

    def test_masters_exist_at_once(self, amp: Any) -> None:
        """For fp16 parameters; fp32 ones are used as they are."""
        model = _half_mlp()
        optimizer = _wrapped(model)
        assert {p.dtype for g in optimizer.param_groups for p in g["params"]} == {torch.float32}
        assert len(optimizer.all_fp16_params) == len(optimizer.all_fp32_from_fp16_params) == 4
        assert optimizer.all_fp32_from_fp32_params == [model[2].weight, model[2].bias]

    def test_backward_and_step(self, amp: Any) -> None:
        """The model keeps scaled gradients; the step goes through the masters."""
        model = linear(1.0).half()
        optimizer = _wrapped(model, static_loss_scale=128.0)
        optimizer.backward(_loss(model))
        assert model.weight.grad.tolist() == [[128.0, 128.0]]
        assert optimizer.inspect_master_grad_data()[0][0].tolist() == [[1.0, 1.0]]
        optimizer.step()
        assert model.weight.tolist() == [[0.0, 0.0]]

    def test_dynamic_scale(self, amp: Any) -> None:
        """An overflow halves the scale, skips the step, and spoils norm and inspection."""
        model = linear(1.0).half()
        optimizer = _wrapped(model, dynamic_loss_scale=True)
        assert optimizer.loss_scale == S
        optimizer.backward(_loss(model) * 1e-3, update_master_grads=False)
        put_inf(model)
        optimizer.update_master_grads()
        assert optimizer.overflow
        assert optimizer.loss_scale == S / 2
        assert optimizer.clip_master_grads(1.0) == -1
        assert optimizer.inspect_master_grad_data() is None
        optimizer.step()
        assert model.weight.tolist() == [[1.0, 1.0]]
        optimizer.zero_grad()
        optimizer.backward(_loss(model) * 0.25)
        optimizer.step()
        assert model.weight.tolist() == [[0.75, 0.75]]

    def test_dynamic_arguments(self, amp: Any) -> None:
        """`scale_factor` is accepted and ignored."""
        arguments = {"init_scale": 8.0, "scale_window": 2, "scale_factor": 16.0}
        model = linear(1.0).half()
        optimizer = _wrapped(model, dynamic_loss_scale=True, dynamic_loss_args=arguments)
        for _ in range(2):
            optimizer.backward(_loss(model))
            optimizer.zero_grad()
        assert optimizer.loss_scale == 16.0

    def test_clipping(self, amp: Any) -> None:
        """The masters' unscaled gradients."""
        model = linear(1.0).half()
        optimizer = _wrapped(model, static_loss_scale=16.0)
        optimizer.backward(_loss(model))
        assert float(optimizer.clip_master_grads(1.0)) == pytest.approx(2**0.5)

    @pytest.mark.parametrize("to_none", [False, True])
    def test_zero_grad(self, to_none: bool, amp: Any) -> None:
        """Masters and model, to zero or to None."""
        model = linear(1.0).half()
        optimizer = _wrapped(model)
        optimizer.backward(_loss(model))
        optimizer.zero_grad(set_grads_to_None=to_none)
        grads = [model.weight.grad, optimizer.param_groups[0]["params"][0].grad]
        assert all(g is None if to_none else bool((g == 0).all()) for g in grads)

    def test_two_backwards_unscale_fp32_gradients_twice(self, amp: Any) -> None:
        """Unless the first leaves the update to the second: an Apex fault."""
        for careful, expected in ((True, 2.0), (False, 1.25)):
            model = linear(1.0)
            optimizer = _wrapped(model, static_loss_scale=4.0)
            loss = model(torch.ones(1, 2)).sum()
            optimizer.backward(loss, update_master_grads=not careful, retain_graph=True)
            optimizer.backward(loss)
            assert model.weight.grad[0, 0].item() == expected

    def test_closures(self, amp: Any) -> None:
        """The model follows the masters between evaluations."""
        model = linear(1.0).half()
        inner = torch.optim.LBFGS(model.parameters(), lr=0.25, max_iter=3)
        optimizer = _wrapped(model, inner, static_loss_scale=8.0)
        seen = []

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = (model(torch.ones(1, 2, dtype=HALF)).float() - 1.0).square().sum()
            seen.append(loss.item())
            optimizer.backward(loss)
            return loss

        optimizer.step(closure)
        assert len(set(seen)) == len(seen) > 1
        assert seen[-1] < seen[0]

    def test_checkpoint(self, amp: Any) -> None:
        """State, scaler and masters come back; the masters exactly."""
        first, second = _half_mlp(), _half_mlp()
        optimizers = [_wrapped(m, sgd(m, lr=0.1), dynamic_loss_scale=True) for m in (first, second)]

        def train(model: nn.Module, optimizer: Any, steps: range) -> float:
            loss = torch.zeros(())
            for step in steps:
                images, labels = batch(step)
                loss = F.cross_entropy(model(images.half()).float(), labels)
                optimizer.zero_grad()
                optimizer.backward(loss)
                optimizer.step()
            return loss.item()

        train(first, optimizers[0], range(4))
        stream = io.BytesIO()
        torch.save({"m": first.state_dict(), "o": optimizers[0].state_dict()}, stream)
        stream.seek(0)
        saved = torch.load(stream, weights_only=False)
        second.load_state_dict(saved["m"])
        optimizers[1].load_state_dict(saved["o"])
        assert train(second, optimizers[1], range(4, 8)) == train(first, optimizers[0], range(4, 8))

    def test_other_dtypes_are_refused(self, amp: Any) -> None:
        """TypeError."""
        with pytest.raises(TypeError, match="HalfTensor"):
            _wrapped(linear().double())

    def test_it_equals_masters_by_hand(self, amp: Any) -> None:
        """With a GradScaler, bit for bit."""
        ours = _half_mlp()
        wrapped = _wrapped(ours, sgd(ours, lr=0.1), static_loss_scale=128.0)
        theirs = mlp()
        inner = sgd(theirs, lr=0.1)
        half = HalfModel(theirs, inner)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        for step in range(6):
            images, labels = batch(step)
            loss = F.cross_entropy(ours(images.half()).float(), labels)
            wrapped.backward(loss)
            wrapped.step()
            wrapped.zero_grad()
            other = F.cross_entropy(half(images), labels)
            scaler.scale(other).backward()
            half.collect()
            scaler.step(inner)
            scaler.update(128.0)
            half.push()
            inner.zero_grad()
            assert loss.item() == other.item()


class TestHelpers:
    """Functions on models and parameter lists."""

    def test_network_to_half(self, amp: Any) -> None:
        """An input cast in front; keys get the prefix "1."."""
        from apex.fp16_utils import network_to_half

        model = network_to_half(mlp())
        assert model(batch(0)[0]).dtype == HALF
        assert model[1][2].weight.dtype == torch.float32
        assert all(key.startswith("1.") for key in model.state_dict())

    def test_fp16_model(self, amp: Any) -> None:
        """As network_to_half with the prefix "network."."""
        from apex.fp16_utils import FP16Model

        model = FP16Model(mlp())
        assert model(batch(0)[0]).dtype == HALF
        assert all(key.startswith("network.") for key in model.state_dict())

    def test_convert_module_converts_gradients(self, amp: Any) -> None:
        """But not those of its children."""
        from apex.fp16_utils import convert_module

        model = nn.Sequential(linear())
        model[0].weight.grad = torch.ones(1, 2)
        convert_module(model, HALF)
        assert model[0].weight.dtype == torch.float32
        convert_module(model[0], HALF)
        assert model[0].weight.dtype == model[0].weight.grad.dtype == HALF

    @pytest.mark.parametrize("flat", [False, True])
    def test_parameter_lists(self, flat: bool, amp: Any) -> None:
        """Gradients to the masters, masters back to the model."""
        from apex import fp16_utils

        model = nn.Sequential(linear(1.0), linear(2.0)).half()
        params, masters = fp16_utils.prep_param_lists(model, flat_master=flat)
        assert len(masters) == (1 if flat else 2)
        for value, param in enumerate(params):
            param.grad = torch.full_like(param, value + 0.5)
        fp16_utils.model_grads_to_master_grads(params, masters, flat_master=flat)
        with torch.no_grad():
            for master in masters:
                master -= master.grad
        fp16_utils.master_params_to_model_params(params, masters, flat_master=flat)
        assert [param[0, 0].item() for param in params] == [0.5, 0.5]

    def test_missing_gradients_are_dropped(self, amp: Any) -> None:
        """Also from the master."""
        from apex import fp16_utils

        params, masters = fp16_utils.prep_param_lists(linear().half())
        masters[0].grad = torch.ones(1, 2)
        fp16_utils.model_grads_to_master_grads(params, masters)
        assert masters[0].grad is None

    def test_small_ones(self, amp: Any) -> None:
        """to_python_float and clip_grad_norm."""
        from apex.fp16_utils import clip_grad_norm, to_python_float

        assert to_python_float(torch.tensor([2.5])) == 2.5
        assert clip_grad_norm is torch.nn.utils.clip_grad_norm_


class TestScalers:
    """LossScaler and DynamicLossScaler of fp16_utils."""

    def test_static(self, amp: Any) -> None:
        """Scales the loss and nothing else."""
        from apex.fp16_utils import LossScaler

        model = linear()
        scaler = LossScaler(8.0)
        scaler.backward(model(torch.ones(1, 2)).sum())
        assert model.weight.grad[0, 0].item() == 8.0
        scaler.update_scale(scaler.has_overflow(model.parameters()))
        assert scaler.loss_scale == 8.0
        assert scaler.scale_gradient(None, (torch.ones(1),), None)[0].item() == 8.0

    def test_dynamic(self, amp: Any) -> None:
        """2**32 at first, a window of 1000, not below 1."""
        from apex.fp16_utils import DynamicLossScaler

        model = linear()
        scaler = DynamicLossScaler()
        assert scaler.loss_scale == 2.0**32
        assert not scaler.has_overflow(model.parameters())
        model.weight.grad = torch.full((1, 2), float("nan"))
        assert scaler.has_overflow(model.parameters())
        for _ in range(40):
            scaler.update_scale(True)
        assert scaler.loss_scale == 1
        for _ in range(1000):
            scaler.update_scale(False)
        assert scaler.loss_scale == 2.0
