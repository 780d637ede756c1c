"""Master weights: when they appear, what the patched optimizer does, and Apex's faults there."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from reference.support import linear, put_inf, sgd

S = 2.0**16


def _start(
    amp: Any, model: nn.Module | None = None, lr: float = 1.0, **kwargs: Any
) -> tuple[Any, torch.optim.SGD]:
    model = model or linear(1.0)
    optimizer = sgd(model, lr=lr)
    amp.initialize(model, optimizer, opt_level="O2", verbosity=0, **kwargs)
    return model, optimizer


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value)).sum()


def _step(amp: Any, model: nn.Module, optimizer: Any, value: float = 1.0) -> None:
    with amp.scale_loss(_loss(model, value) * 2.0**-8, optimizer) as scaled:
        scaled.backward()
    optimizer.step()


def _normed() -> nn.Module:
    model = nn.Sequential(linear(1.0), nn.BatchNorm1d(1))
    return model.eval()


def test_masters_appear_at_the_first_backward(amp: Any) -> None:
    """Until then the optimizer holds the fp16 parameters."""
    model, optimizer = _start(amp)
    assert list(amp.master_params(optimizer)) == [model.weight]
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        (master,) = amp.master_params(optimizer)
        assert master is not model.weight
        assert master.dtype == torch.float32
        scaled.backward()


@pytest.mark.parametrize("trigger", ["zero_grad", "add_param_group"])
def test_or_at_other_first_uses(trigger: str, amp: Any) -> None:
    """zero_grad and add_param_group make them too."""
    _, optimizer = _start(amp)
    if trigger == "zero_grad":
        optimizer.zero_grad()
    else:
        optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert {p.dtype for p in amp.master_params(optimizer)} == {torch.float32}


def test_fp32_and_frozen_parameters_have_no_master(amp: Any) -> None:
    """Batch norms are fp32 already; frozen weights stay fp16."""
    model = nn.Sequential(linear(), linear(), nn.BatchNorm1d(2))
    model[1].weight.requires_grad_(False)
    model, optimizer = _start(amp, model)
    optimizer.zero_grad()
    first, frozen, weight, bias = amp.master_params(optimizer)
    assert first is not model[0].weight
    assert frozen is model[1].weight
    assert frozen.dtype == torch.float16
    assert weight is model[2].weight
    assert bias is model[2].bias


def test_the_model_keeps_scaled_gradients(amp: Any) -> None:
    """Only the masters' are unscaled."""
    model, optimizer = _start(amp, loss_scale=128.0)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
    (master,) = amp.master_params(optimizer)
    assert model.weight.grad.tolist() == [[128.0, 128.0]]
    assert master.grad.tolist() == [[1.0, 1.0]]
    assert master.grad.dtype == torch.float32


def test_the_step_updates_masters_and_model(amp: Any) -> None:
    """A change too small for fp16 is kept in the master; its gradient is dropped."""
    model, optimizer = _start(amp, lr=2.0**-6)
    _step(amp, model, optimizer)
    (master,) = amp.master_params(optimizer)
    assert master[0, 0].item() == 1.0 - 2.0**-14
    assert model.weight[0, 0].item() == 1.0
    assert master.grad is None
    for _ in range(15):
        _step(amp, model, optimizer)
    assert model.weight[0, 0].item() == 1.0 - 2.0**-10


def test_closures_are_refused(amp: Any) -> None:
    """RuntimeError."""
    _, optimizer = _start(amp)
    with pytest.raises(RuntimeError, match="closure"):
        optimizer.step(lambda: None)


def test_zero_grad_takes_no_argument(amp: Any) -> None:
    """It zeroes the model's gradients, keeping them, and drops the masters'."""
    model, optimizer = _start(amp, nn.Sequential(linear(), nn.BatchNorm1d(1)).eval())
    with amp.scale_loss(_loss(model) * 2.0**-8, optimizer) as scaled:
        scaled.backward()
    optimizer.zero_grad()
    assert model[0].weight.grad.tolist() == [[0.0, 0.0]]
    assert model[1].weight.grad.tolist() == [0.0]
    assert next(amp.master_params(optimizer)).grad is None
    with pytest.raises(TypeError):
        optimizer.zero_grad(set_to_none=True)


def test_accumulation(amp: Any) -> None:
    """Into the masters, in fp32."""
    model, optimizer = _start(amp, loss_scale=16.0)
    for value in (2048.0, 1.0):
        with amp.scale_loss(_loss(model, value), optimizer) as scaled:
            scaled.backward()
    assert next(amp.master_params(optimizer)).grad.tolist() == [[2049.0, 2049.0]]


def test_delay_unscale_accumulates_in_fp16(amp: Any) -> None:
    """In the model's own gradients, scaled."""
    model, optimizer = _start(amp, loss_scale=16.0)
    _step(amp, model, optimizer)
    optimizer.zero_grad()
    for value, delay in ((2048.0, True), (1.0, False)):
        with amp.scale_loss(_loss(model, value), optimizer, delay_unscale=delay) as scaled:
            scaled.backward()
    assert next(amp.master_params(optimizer)).grad.tolist() == [[2048.0, 2048.0]]


def test_forgotten_zero_grad(amp: Any) -> None:
    """fp16 parameters do not accumulate over steps, fp32 ones do; native accumulates all."""
    model, optimizer = _start(amp, _normed(), lr=0.0, loss_scale=2.0)
    for _ in range(3):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
        master, _, bias = amp.master_params(optimizer)
        grads = (master.grad[0, 0].item(), bias.grad.item())
        optimizer.step()
    assert grads == (pytest.approx(1.0, rel=1e-4), 3.0)


def test_an_overflow_skips_and_drops_the_masters_gradients(amp: Any) -> None:
    """In an fp16 or an fp32 parameter."""
    for which in (0, 1):
        model, optimizer = _start(amp, _normed())
        with amp.scale_loss(_loss(model) * 2.0**-8, optimizer) as scaled:
            scaled.backward()
            put_inf(model[which])
        before = [p.clone() for p in model.parameters()]
        optimizer.step()
        assert all(torch.equal(p, q) for p, q in zip(before, model.parameters(), strict=True))
        assert next(amp.master_params(optimizer)).grad is None
        assert amp._amp_state.loss_scalers[0].loss_scale() == S / 2


def test_added_groups_get_masters(amp: Any) -> None:
    """For their fp16 parameters."""
    model, optimizer = _start(amp, loss_scale=16.0)
    late = linear(1.0).half()
    optimizer.add_param_group({"params": late.parameters(), "lr": 0.5})
    total = _loss(model) + late(torch.ones(1, 2).half()).sum().float()
    with amp.scale_loss(total, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    assert optimizer.param_groups[1]["params"][0].dtype == torch.float32
    assert late.weight.tolist() == [[0.5, 0.5]]


def test_optimizer_state_lives_on_the_masters(amp: Any) -> None:
    """In fp32, also state made before initialize."""
    model = linear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    _loss(model).backward()
    optimizer.step()
    optimizer.zero_grad()
    amp.initialize(model, optimizer, opt_level="O2", verbosity=0)
    _step(amp, model, optimizer)
    (master,) = amp.master_params(optimizer)
    assert list(optimizer.state) == [master]
    assert optimizer.state[master]["momentum_buffer"].dtype == torch.float32


def test_other_levels_may_have_masters(amp: Any) -> None:
    """O3 with master_weights=True and batch norm in fp32 is O2."""
    model = linear()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O3", master_weights=True, verbosity=0)
    optimizer.zero_grad()
    assert next(amp.master_params(optimizer)).dtype == torch.float32
    plain = linear()
    other = sgd(plain)
    amp.initialize(plain, other, opt_level="O2", master_weights=False, verbosity=0)
    _step(amp, plain, other)
    assert next(amp.master_params(other)) is plain.weight


def test_state_loaded_before_the_first_backward_passes_through_fp16(amp: Any) -> None:
    """Small second moments are lost on the way: an Apex fault."""
    model = linear()
    optimizer = torch.optim.Adam(model.parameters())
    amp.initialize(model, optimizer, opt_level="O2", verbosity=0)
    for _ in range(2):
        _step(amp, model, optimizer, value=2.0**-4)
        optimizer.zero_grad()
    saved = copy.deepcopy(optimizer.state_dict())
    assert saved["state"][0]["exp_avg_sq"][0, 0].item() > 0
    fresh = linear()
    resumed = torch.optim.Adam(fresh.parameters())
    amp.initialize(fresh, resumed, opt_level="O2", verbosity=0)
    resumed.load_state_dict(saved)
    resumed.zero_grad()
    (master,) = amp.master_params(resumed)
    assert resumed.state[master]["exp_avg_sq"].dtype == torch.float32
    assert resumed.state[master]["exp_avg_sq"][0, 0].item() == 0.0


def test_scale_one_loses_accumulated_fp32_gradients(amp: Any) -> None:
    """With a static scale of 1 only the last micro-batch of batch norms survives: an Apex fault."""
    model, optimizer = _start(amp, _normed(), loss_scale=1.0)
    for _ in range(3):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
    master, _, bias = amp.master_params(optimizer)
    assert bias.grad.item() == 1.0
    assert master.grad[0, 0].item() == pytest.approx(3.0, rel=1e-3)


def test_delay_unscale_at_the_very_first_backward_loses_fp32_gradients(amp: Any) -> None:
    """Making the masters drops them: an Apex fault, in the first window only."""
    model, optimizer = _start(amp, _normed(), lr=0.0, loss_scale=2.0)
    seen = []
    for _ in range(2):
        for delay in (True, False):
            with amp.scale_loss(_loss(model), optimizer, delay_unscale=delay) as scaled:
                scaled.backward()
        seen.append(model[1].bias.grad)
        optimizer.step()
        model[1].bias.grad = None
    assert seen[0] is None
    assert seen[1].item() == 2.0


def test_the_warm_up_hack_avoids_it(amp: Any) -> None:
    """zero_grad and step before training make the masters early."""
    model, optimizer = _start(amp, _normed(), lr=0.0, loss_scale=2.0)
    optimizer.zero_grad()
    optimizer.step()
    for delay in (True, False):
        with amp.scale_loss(_loss(model), optimizer, delay_unscale=delay) as scaled:
            scaled.backward()
    assert model[1].bias.grad.item() == 2.0


def test_o3_unscales_fp16_gradients_in_place(amp: Any) -> None:
    """Which a GradScaler refuses."""
    model = linear()
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O3", loss_scale=128.0, verbosity=0)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
    assert model.weight.grad.dtype == torch.float16
    assert model.weight.grad.tolist() == [[1.0, 1.0]]
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(_loss(model)).backward()
    with pytest.raises(ValueError, match="unscale FP16"):
        scaler.unscale_(optimizer)
