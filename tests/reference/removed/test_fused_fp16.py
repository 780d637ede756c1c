"""FP16_Optimizer and FusedAdam of apex.optimizers in 2019, of apex.contrib.optimizers since."""

from __future__ import annotations

from typing import Any

import pytest
import torch

_START = [0.5, -2.0, 1.5]
_GRADS = [[3.0, -4.0, 0.0], [0.25, 0.5, -1.0], [2.0, 2.0, 1.0]]


def _kernel(grads: list[list[float]], **given: Any) -> torch.Tensor:
    """Step as `fused_adam_cuda_kernel.cu` and its caller do, on doubles; gradients come scaled by 128."""
    weight = torch.tensor(_START, dtype=torch.float64)
    m, v = torch.zeros_like(weight), torch.zeros_like(weight)
    b1, b2, lr, eps = 0.9, 0.999, 0.1, given.get("eps", 1e-8)
    for step, values in enumerate(grads, 1):
        grad = torch.tensor(values, dtype=torch.float64) * 128
        combined = 128.0
        if given.get("max_grad_norm", 0.0) > 0:
            clip = (grad.norm().item() / 128 + 1e-6) / given["max_grad_norm"]
            combined = clip * 128 if clip > 1 else combined
        grad = grad / combined
        m, v = b1 * m + (1 - b1) * grad, b2 * v + (1 - b2) * grad * grad
        inside = given.get("eps_inside_sqrt", False)
        denominator = (v + eps).sqrt() if inside else v.sqrt() + eps
        size = lr
        if given.get("bias_correction", True):
            size = lr * (1 - b2**step) ** 0.5 / (1 - b1**step)
        weight = weight - size * (m / denominator + given.get("weight_decay", 0.0) * weight)
    return weight


def _wrapped(package: str, static: float | None = None, **given: Any) -> tuple[Any, Any]:
    module = __import__(package, fromlist=["FP16_Optimizer"])
    param = torch.nn.Parameter(torch.tensor(_START, dtype=torch.float16))
    adam = module.FusedAdam([param], lr=0.1, **given)
    how = {"dynamic_loss_scale": True} if static is None else {"static_loss_scale": static}
    return param, module.FP16_Optimizer(adam, **how)


def _backward(optimizer: Any, param: Any, values: list[float]) -> None:
    optimizer.zero_grad()
    optimizer.backward((param * torch.tensor(values, dtype=torch.float16)).sum())


@pytest.mark.parametrize("package", ["apex.optimizers", "apex.contrib.optimizers"])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "bias_correction": False},
        {"max_grad_norm": 1.0},
        {"max_grad_norm": 100.0, "use_mt": True},
        {"eps": 0.1, "eps_inside_sqrt": True},
    ],
    ids=str,
)
def test_steps_are_those_of_the_kernel(package: str, given: dict[str, Any], amp: Any) -> None:
    """Clip, bias correction, decay and eps are as there, on fp32 copies of the weights."""
    param, optimizer = _wrapped(package, static=128.0, **given)
    for values in _GRADS:
        _backward(optimizer, param, values)
        optimizer.step()
    (master,) = optimizer.param_groups[0]["params"]
    assert master.dtype is torch.float32
    assert torch.allclose(master.double(), _kernel(_GRADS, **given), rtol=1e-5, atol=1e-6)
    assert torch.equal(param.detach(), master.half())


def test_dynamic_scale(amp: Any) -> None:
    """It starts at 2**16, an overflow halves it and skips the step, 1000 steps without one double it."""
    param, optimizer = _wrapped("apex.contrib.optimizers")
    _backward(optimizer, param, [float("inf"), 0.0, 0.0])
    optimizer.step()
    assert (optimizer.cur_scale, param.tolist()) == (2.0**15, _START)
    for _ in range(1000):
        assert optimizer.cur_scale == 2.0**15
        param.grad = torch.zeros_like(param)
        optimizer.step()
    assert optimizer.cur_scale == 2.0**16


def test_dynamic_scale_stops_at_one(amp: Any) -> None:
    """However many steps overflow."""
    param, optimizer = _wrapped("apex.optimizers")
    for _ in range(20):
        param.grad = torch.full_like(param, float("nan"))
        optimizer.step()
    assert optimizer.cur_scale == 1


def test_gradients_accumulate_scaled(amp: Any) -> None:
    """Two backward passes add up in the model, and nothing unscales them before the step."""
    param, optimizer = _wrapped("apex.optimizers", static=4.0)
    optimizer.backward(param.sum())
    optimizer.backward(param.sum())
    assert param.grad.tolist() == [8.0] * 3


def test_resumes(amp: Any) -> None:
    """The state holds the copies of the weights, the scale and what the wrapped optimizer keeps."""
    param, optimizer = _wrapped("apex.optimizers", static=8.0)
    _backward(optimizer, param, [1.0] * 3)
    optimizer.step()
    resumed = _wrapped("apex.optimizers")[1]
    resumed.load_state_dict(optimizer.state_dict())
    assert torch.equal(resumed.fp32_groups[0][0], optimizer.fp32_groups[0][0])
    assert (resumed.cur_iter, resumed.cur_scale) == (1, 8.0)


def test_takes_no_settings_of_the_scale(amp: Any) -> None:
    """As there."""
    module = __import__("apex.contrib.optimizers", fromlist=["FP16_Optimizer"])
    adam = module.FusedAdam([torch.nn.Parameter(torch.ones(1))])
    with pytest.raises(SystemError):
        module.FP16_Optimizer(adam, dynamic_loss_scale=True, dynamic_loss_args={"init_scale": 2})
