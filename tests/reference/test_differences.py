"""Every known case in which Apex and native differ, shown on both sides."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from amp_migrate.equivalence import reference
from reference.support import linear, put_inf, sgd
from reference.training import Program, make_scaler, train_apex, train_native

S = 2.0**16


def _loss(model: nn.Module, value: float = 1.0) -> torch.Tensor:
    return model(torch.full((1, 2), value)).sum()


def _started(amp: Any, loss_scale: float | str = "dynamic") -> tuple[nn.Linear, torch.optim.SGD]:
    model = linear(1.0)
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O0", loss_scale=loss_scale, verbosity=0)
    return model, optimizer


def test_d2_overflow_under_a_static_scale(amp: Any) -> None:
    """Apex steps into NaN; native skips."""
    program = Program("O0", loss_scale=128.0, overflows=((2, 0),))
    apex = train_apex(program, amp)
    reference.uninstall()
    native = train_native(program)
    assert apex[:2] == native[:2]
    assert apex[2].taken
    assert not native[2].taken
    assert apex[3].losses[0] != apex[3].losses[0]
    assert native[3].losses[0] == native[3].losses[0]


@pytest.mark.parametrize("scaled_too", [False, True])
def test_d3_an_unscaled_second_backward(scaled_too: bool, amp: Any) -> None:
    """Apex keeps it whole; native divides it by the scale unless it is scaled as well."""
    model, optimizer = _started(amp)
    with amp.scale_loss(_loss(model), optimizer) as scaled:
        scaled.backward()
    _loss(model, 3.0).backward()
    apex = model.weight.grad.clone()
    reference.uninstall()
    model = linear(1.0)
    optimizer = sgd(model)
    scaler = make_scaler("dynamic")
    scaler.scale(_loss(model)).backward()
    regularizer = _loss(model, 3.0)
    (scaler.scale(regularizer) if scaled_too else regularizer).backward()
    scaler.unscale_(optimizer)
    assert apex.tolist() == [[4.0, 4.0]]
    assert torch.equal(apex, model.weight.grad) is scaled_too


def test_d5_a_tuple_of_optimizers_with_accumulation(amp: Any) -> None:
    """Apex divides the earlier gradients again; native does not care."""
    model, optimizer = _started(amp, loss_scale=4.0)
    for _ in range(2):
        with amp.scale_loss(_loss(model), (optimizer,)) as scaled:
            scaled.backward()
    reference.uninstall()
    twin = linear(1.0)
    scaler = make_scaler(4.0)
    for _ in range(2):
        scaler.scale(_loss(twin)).backward()
    scaler.unscale_(sgd(twin))
    assert model.weight.grad.tolist() == [[1.25, 1.25]]
    assert twin.weight.grad.tolist() == [[2.0, 2.0]]


def test_d6_delay_overflow_check(amp: Any) -> None:
    """Apex lets the infinity through; native has no such option and skips."""
    model, optimizer = _started(amp)
    with amp.scale_loss(_loss(model), optimizer, delay_overflow_check=True) as scaled:
        scaled.backward()
        put_inf(model)
    optimizer.step()
    assert not torch.isfinite(model.weight).all()
    reference.uninstall()
    twin = linear(1.0)
    scaler = make_scaler("dynamic")
    scaler.scale(_loss(twin)).backward()
    put_inf(twin)
    scaler.step(sgd(twin))
    assert twin.weight.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("scale", [1000.0, 3.0])
@pytest.mark.parametrize(("micro_batches", "same"), [(1, True), (3, False)])
def test_d7_scales_that_are_no_power_of_two(
    scale: float, micro_batches: int, same: bool, amp: Any
) -> None:
    """Unscaling each micro-batch rounds otherwise than unscaling the sum."""
    program = Program("O0", loss_scale=scale, micro_batches=micro_batches)
    apex = train_apex(program, amp)
    reference.uninstall()
    native = train_native(program)
    assert (apex == native) is same
    assert apex[-1].losses == pytest.approx(native[-1].losses, rel=1e-5)


def test_d8_an_optimizer_without_gradients(amp: Any) -> None:
    """Apex steps; native raises."""
    _, optimizer = _started(amp)
    with amp.scale_loss(torch.ones(1, requires_grad=True).sum(), optimizer) as scaled:
        scaled.backward()
    optimizer.step()
    reference.uninstall()
    scaler = make_scaler("dynamic")
    scaler.scale(torch.ones(1, requires_grad=True).sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(sgd(linear()))


def test_d10_fp16_vector_losses(amp: Any) -> None:
    """Apex scales in fp32; native overflows in fp16 unless the loss is widened."""
    _, optimizer = _started(amp)
    losses = torch.full((3,), 2.0, dtype=torch.float16)
    with amp.scale_loss(losses, optimizer) as scaled:
        assert scaled.tolist() == [2 * S] * 3
    reference.uninstall()
    scaler = make_scaler("dynamic")
    assert scaler.scale(losses).tolist() == [float("inf")] * 3
    assert scaler.scale(losses.float()).tolist() == [2 * S] * 3


def test_d11_the_stale_skip(amp: Any) -> None:
    """Overflow without a step, then a good batch: Apex skips it, native steps."""
    model, optimizer = _started(amp)
    for good in (False, True):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
            if not good:
                put_inf(model)
        if good:
            optimizer.step()
        optimizer.zero_grad()
    reference.uninstall()
    twin = linear(1.0)
    native = sgd(twin)
    scaler = make_scaler("dynamic")
    for good in (False, True):
        scaler.scale(_loss(twin)).backward()
        if good:
            scaler.step(native)
            scaler.update()
        else:
            put_inf(twin)
        native.zero_grad()
    assert model.weight.tolist() == [[1.0, 1.0]]
    assert twin.weight.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(("blocks", "same"), [(1, True), (2, False)])
def test_a_weight_used_in_two_forwards(blocks: int, same: bool, amp: Any) -> None:
    """Apex adds both gradients in fp16, as native does in one autocast block but not in two."""
    model = linear(1.0)
    optimizer = sgd(model)
    amp.initialize(model, optimizer, opt_level="O1", loss_scale=16.0, verbosity=0)
    inputs = (torch.full((1, 2), 2.0), torch.full((1, 2), 2.0**-10))
    with amp.scale_loss(sum(model(x).float().sum() for x in inputs), optimizer) as scaled:
        scaled.backward()
    reference.uninstall()
    twin = linear(1.0)
    native = make_scaler(16.0)
    if blocks == 1:
        with torch.autocast("cpu", dtype=torch.float16):
            total = sum(twin(x).float().sum() for x in inputs)
    else:
        total = torch.zeros(())
        for x in inputs:
            with torch.autocast("cpu", dtype=torch.float16):
                total = total + twin(x).float().sum()
    native.scale(total).backward()
    native.unscale_(sgd(twin))
    assert torch.equal(model.weight.grad, twin.weight.grad) is same


def test_o2_is_close_to_autocast_but_not_equal(amp: Any) -> None:
    """Inputs and every operation are fp16 under O2."""
    apex = train_apex(Program("O2", steps=10), amp)
    reference.uninstall()
    native = train_native(Program("O1", steps=10))
    ours = [row.losses[0] for row in apex]
    theirs = [row.losses[0] for row in native]
    assert ours != theirs
    assert ours == pytest.approx(theirs, abs=1e-2)


def test_o2_without_zero_grad(amp: Any) -> None:
    """Native accumulates everything; Apex O2 only what is fp32."""
    model = nn.Sequential(linear(1.0), nn.BatchNorm1d(1)).eval()
    optimizer = sgd(model, lr=0.0)
    amp.initialize(model, optimizer, opt_level="O2", loss_scale=2.0, verbosity=0)
    for _ in range(3):
        with amp.scale_loss(_loss(model), optimizer) as scaled:
            scaled.backward()
        grads = [p.grad.abs().max().item() for p in amp.master_params(optimizer)]
        optimizer.step()
    reference.uninstall()
    twin = nn.Sequential(linear(1.0), nn.BatchNorm1d(1)).eval()
    for _ in range(3):
        _loss(twin).backward()
    assert grads[0] == pytest.approx(1.0, rel=1e-3)
    assert twin[0].weight.grad.max().item() == pytest.approx(3.0, rel=1e-3)
    assert grads[2] == twin[1].bias.grad.item() == 3.0


def test_casts_of_apex_that_native_does_not_have(amp: Any) -> None:
    """A selection on the CPU: in-place residuals, 0-dim parameters, .cpu(), functions elsewhere."""
    half, single = torch.ones(2, dtype=torch.float16), torch.ones(2)
    model = linear()
    amp.initialize(model, sgd(model), opt_level="O1", verbosity=0)
    apex = [
        (half * torch.tensor(2.0)).dtype,
        half.cpu().dtype,
        half.std().dtype,
        F.gelu(half).dtype,
        (single @ single).dtype,
    ]
    residual = half
    residual += single
    apex.append(residual.dtype)
    reference.uninstall()
    with torch.autocast("cpu", dtype=torch.float16):
        native = [
            (half * torch.tensor(2.0)).dtype,
            half.cpu().dtype,
            half.std().dtype,
            F.gelu(half).dtype,
        ]
        residual = half.clone()
        residual += single
        native.append(residual.dtype)
    native.insert(4, (single @ single).dtype)
    assert apex == [torch.float32] * 4 + [torch.float16, torch.float32]
    assert native == [torch.float16] * 4 + [torch.float32, torch.float16]
