"""The fused optimizers: their maths, defaults and peculiarities."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from reference.support import batch, digest, linear, mlp, sgd

Make = Callable[[Any], torch.optim.Optimizer]


def _fused(name: str, params: Any, **kwargs: Any) -> Any:
    from apex import optimizers

    return vars(optimizers)[name](params, **kwargs)


def _train(make: Make, steps: int = 8) -> str:
    model = mlp()
    optimizer = make(model.parameters())
    for step in range(steps):
        images, labels = batch(step)
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
    return digest(model.parameters())


_O = torch.optim


@pytest.mark.parametrize(
    ("name", "kwargs", "native"),
    [
        ("FusedAdam", {"lr": 0.01}, lambda p: _O.AdamW(p, lr=0.01, weight_decay=0.0)),
        (
            "FusedAdam",
            {"lr": 0.01, "weight_decay": 0.1},
            lambda p: _O.AdamW(p, lr=0.01, weight_decay=0.1),
        ),
        (
            "FusedAdam",
            {"lr": 0.01, "weight_decay": 0.1, "adam_w_mode": False},
            lambda p: _O.Adam(p, lr=0.01, weight_decay=0.1),
        ),
        (
            "FusedSGD",
            {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
            lambda p: _O.SGD(p, lr=0.01, momentum=0.9, weight_decay=0.1, nesterov=True),
        ),
        (
            "FusedSGD",
            {"lr": 0.01, "momentum": 0.9, "dampening": 0.5},
            lambda p: _O.SGD(p, lr=0.01, momentum=0.9, dampening=0.5),
        ),
        ("FusedSGD", {"lr": 0.01}, lambda p: _O.SGD(p, lr=0.01)),
        (
            "FusedAdagrad",
            {"lr": 0.01, "weight_decay": 0.1},
            lambda p: _O.Adagrad(p, lr=0.01, weight_decay=0.1),
        ),
    ],
)
def test_same_bits_as_torch(name: str, kwargs: dict[str, Any], native: Make, amp: Any) -> None:
    """Where torch has the same optimizer."""
    assert _train(lambda params: _fused(name, params, **kwargs)) == _train(native)


def test_adam_has_no_decay_by_default(amp: Any) -> None:
    """AdamW of torch has 0.01, which trains differently."""
    assert _train(lambda p: _fused("FusedAdam", p)) != _train(lambda p: _O.AdamW(p))


def _one(name: str, grad: float = 1.0, weight: float = 2.0, **kwargs: Any) -> float:
    """The only weight after one step."""
    param = torch.nn.Parameter(torch.full((1,), weight))
    param.grad = torch.full((1,), grad)
    _fused(name, [param], **kwargs).step()
    return param.item()


def test_adam_without_bias_correction(amp: Any) -> None:
    """The first step is (1 - beta1) / sqrt(1 - beta2) of the rate."""
    moved = 2.0 - _one("FusedAdam", lr=0.1, bias_correction=False)
    assert moved == pytest.approx(0.1 * 0.1 / math.sqrt(0.001), rel=1e-4)


def test_decoupled_adagrad(amp: Any) -> None:
    """Decay outside the root."""
    moved = 2.0 - _one("FusedAdagrad", lr=0.1, weight_decay=0.5, adagrad_w_mode=True)
    assert moved == pytest.approx(0.1 * (1.0 + 0.5 * 2.0), rel=1e-5)


def test_sgd_with_decay_after_momentum(amp: Any) -> None:
    """The momentum does not see the decay."""
    param = torch.nn.Parameter(torch.full((1,), 2.0))
    optimizer = _fused(
        "FusedSGD", [param], lr=0.1, momentum=0.5, weight_decay=0.5, wd_after_momentum=True
    )
    param.grad = torch.ones(1)
    optimizer.step()
    assert param.item() == pytest.approx(2.0 - 0.1 * (1.0 + 1.0))
    assert optimizer.state[param]["momentum_buffer"].item() == 1.0


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, 2.0 - 0.1 * 2.0),  # trust ratio 2 / 1.02, update 1 + 0.01 * 2
        ({"weight_decay": 0.0}, 2.0 - 0.1),  # no trust ratio without decay
        ({"weight_decay": 0.0, "use_nvlamb": True}, 2.0 - 0.1 * 2.0),
    ],
)
def test_lamb(kwargs: dict[str, Any], expected: float, amp: Any) -> None:
    """One step of a single weight: the update has the weight's norm."""
    assert _one("FusedLAMB", lr=0.1, **kwargs) == pytest.approx(expected, rel=1e-4)


def test_lamb_clips_all_gradients_together(amp: Any) -> None:
    """To a norm of 1: Adam's first moment shows it."""
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    for param, grad in zip(params, (3.0, 4.0), strict=True):
        param.grad = torch.full((1,), grad)
    optimizer = _fused("FusedLAMB", [{"params": params[:1]}, {"params": params[1:]}])
    optimizer.step()
    moments = [optimizer.state[param]["exp_avg"].item() for param in params]
    assert moments == pytest.approx([0.1 * 0.6, 0.1 * 0.8])


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"bias_correction": False}, 0.1 * 0.1),
        ({}, 0.1 * 0.1 / 0.1 * math.sqrt(0.001)),
        ({"bias_correction": False, "grad_averaging": False}, 0.1),
        ({"bias_correction": False, "init_zero": True}, 0.1 * 0.1 / math.sqrt(0.001)),
        ({"bias_correction": False, "init_zero": True, "norm_type": 0}, 0.1 * 0.1 / 0.001),
        ({"bias_correction": False, "reg_inside_moment": True, "weight_decay": 0.5}, 0.1 * 0.2),
    ],
)
def test_novograd(kwargs: dict[str, Any], expected: float, amp: Any) -> None:
    """One step of a single weight, whose gradient has norm 3."""
    moved = 2.0 - _one("FusedNovoGrad", grad=3.0, lr=0.1, betas=(0.9, 0.999), **kwargs)
    assert moved == pytest.approx(expected, rel=1e-4)


_ALL = ("FusedAdam", "FusedSGD", "FusedAdagrad", "FusedLAMB", "FusedNovoGrad")


@pytest.mark.parametrize("name", _ALL)
def test_fp16_parameters_move_through_fp32(name: str, amp: Any) -> None:
    """The result is the rounded one of the same step on an fp32 parameter."""
    values = torch.linspace(0.5, 1.5, 7).half()
    grads = torch.linspace(-1.0, 1.0, 7).half()
    results = []
    for dtype in (torch.float16, torch.float32):
        param = torch.nn.Parameter(values.clone().to(dtype))
        param.grad = grads.to(dtype)
        optimizer = _fused(name, [param], lr=0.1)
        optimizer.step()
        results.append(param.detach().half())
    assert torch.equal(*results)


@pytest.mark.parametrize("name", _ALL)
def test_zero_grad_takes_no_argument(name: str, amp: Any) -> None:
    """It drops the gradients, or does as torch with set_grad_none=False."""
    for to_none in (True, False):
        model = linear()
        model.weight.grad = torch.ones(1, 2)
        optimizer = _fused(name, model.parameters(), lr=0.1, set_grad_none=to_none)
        with pytest.raises(TypeError):
            optimizer.zero_grad(set_to_none=True)
        optimizer.zero_grad()
        assert model.weight.grad is None


@pytest.mark.parametrize("name", _ALL)
def test_checkpoint(name: str, amp: Any) -> None:
    """A restored optimizer goes on as the saved one, the step count of groups included."""
    model = mlp()
    optimizer = _fused(name, model.parameters(), lr=0.01)

    def step(model: torch.nn.Module, optimizer: Any, number: int) -> str:
        images, labels = batch(number)
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        return digest(model.parameters())

    for number in range(3):
        step(model, optimizer, number)
    twin = mlp()
    other = _fused(name, twin.parameters(), lr=0.01)
    twin.load_state_dict(model.state_dict())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert step(twin, other, 3) == step(model, optimizer, 3)


@pytest.mark.parametrize("name", _ALL)
def test_closures_and_missing_gradients(name: str, amp: Any) -> None:
    """The closure's loss comes back; parameters without a gradient stay."""
    model = linear()
    idle = torch.nn.Parameter(torch.ones(1))
    optimizer = _fused(name, [*model.parameters(), idle], lr=0.1)

    def closure() -> torch.Tensor:
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert model.weight[0, 0].item() != 1.0
    assert idle.item() == 1.0


@pytest.mark.parametrize("name", ["FusedAdam", "FusedLAMB", "FusedNovoGrad"])
def test_amsgrad_is_refused(name: str, amp: Any) -> None:
    """RuntimeError."""
    with pytest.raises(RuntimeError, match="AMSGrad"):
        _fused(name, linear().parameters(), amsgrad=True)


def test_arguments_that_are_refused(amp: Any) -> None:
    """Contradictions and sparse gradients."""
    params = [torch.nn.Parameter(torch.ones(3))]
    with pytest.raises(RuntimeError, match="Master weights"):
        _fused("FusedAdam", params, master_weights=True)
    with pytest.raises(ValueError, match="Nesterov"):
        _fused("FusedSGD", params, lr=0.1, nesterov=True)
    with pytest.raises(ValueError, match="negative"):
        _fused("FusedSGD", params, lr=-0.1)
    with pytest.raises(ValueError, match="required"):
        _fused("FusedSGD", params)
    with pytest.raises(RuntimeError, match="norm"):
        _fused("FusedNovoGrad", params, norm_type=1)
    params[0].grad = torch.ones(3).to_sparse()
    with pytest.raises(RuntimeError, match="sparse"):
        _fused("FusedAdam", params).step()


def test_adam_with_its_own_masters(amp: Any) -> None:
    """Updates too small for fp16 add up."""
    param = torch.nn.Parameter(torch.ones(1, dtype=torch.float16))
    optimizer = _fused("FusedAdam", [param], lr=1e-4, capturable=True, master_weights=True)
    for _ in range(10):
        param.grad = torch.ones(1, dtype=torch.float16)
        optimizer.step()
    assert param.item() == pytest.approx(1.0 - 1e-3, abs=5e-4)
    assert param.item() < 1.0


@pytest.mark.parametrize("level", ["O1", "O2"])
def test_fused_adam_under_amp(level: str, amp: Any) -> None:
    """The same bits as torch's AdamW under the same level."""

    def train(make: Make) -> str:
        model = mlp()
        optimizer = make(model.parameters())
        amp.initialize(model, optimizer, opt_level=level, verbosity=0)
        for step in range(4):
            images, labels = batch(step)
            with amp.scale_loss(F.cross_entropy(model(images), labels), optimizer) as scaled:
                scaled.backward()
            optimizer.step()
            optimizer.zero_grad()
        return digest(model.parameters())

    fused = train(lambda p: _fused("FusedAdam", p, lr=0.01))
    assert fused == train(lambda p: _O.AdamW(p, lr=0.01, weight_decay=0.0))


def test_multi_tensor_apply_is_unavailable(amp: Any) -> None:
    """Programs that ask take their plain path; the others are told."""
    from apex.multi_tensor_apply import multi_tensor_applier

    assert multi_tensor_applier.available is False
    with pytest.raises(RuntimeError, match="not available"):
        multi_tensor_applier(None, None, [])
    assert sgd(linear()) is not None
