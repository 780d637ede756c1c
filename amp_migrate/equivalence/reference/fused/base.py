"""What the fused optimizers share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Values = dict[str, Any]
"""The state of a parameter, or the settings of a group."""


class FusedOptimizer(torch.optim.Optimizer, abc.ABC):
    """`zero_grad` takes no argument; parameters in half precision are updated in fp32.

    Subclasses name the state they keep in the parameter's dtype, and whether groups count steps.
    """

    rounded_state: tuple[str, ...] = ()
    counts_steps = True

    def __init__(self, params: Any, defaults: dict[str, Any], set_grad_none: bool) -> None:
        super().__init__(params, defaults)
        self.set_grad_none = set_grad_none

    def zero_grad(self) -> None:  # type: ignore[override]
        """Drop the gradients, or do as torch does if `set_grad_none` is off."""
        super().zero_grad(set_to_none=True) if self.set_grad_none else super().zero_grad()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient; returns the closure's loss."""
        loss = None if closure is None else closure()
        with torch.no_grad():
            self._update()
        return loss

    @abc.abstractmethod
    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        """Update `state` and `weight`, in place, all fp32."""

    def _update(self) -> None:
        for group in self.param_groups:
            if not group["params"]:
                continue
            if self.counts_steps:
                group["step"] = group.get("step", 0) + 1
            for param in self._used(group):
                self._update_parameter(group, param)

    def _update_parameter(self, group: Values, param: torch.Tensor) -> None:
        weight, grad = self._weight(param), gradient(param)
        state = self.state[param]
        for name in self.rounded_state:
            if name in state:
                state[name] = state[name].float()
        self._update_one(state, group, weight, grad)
        if weight.data_ptr() != param.data_ptr():
            param.copy_(weight)
        for name in self.rounded_state:
            if name in state:
                state[name] = state[name].to(param.dtype)

    def _weight(self, param: torch.Tensor) -> torch.Tensor:
        """The parameter itself if it is fp32, else a copy."""
        return param.detach().float()

    def _used(self, group: Values) -> Iterator[torch.Tensor]:
        for param in group["params"]:
            if param.grad is None:
                continue
            if param.grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
            yield param


def gradient(param: torch.Tensor) -> torch.Tensor:
    """The gradient in fp32."""
    assert param.grad is not None
    return param.grad.detach().float()


def bias_corrections(group: Values) -> tuple[float, float]:
    """`1 - beta ** step` for both betas, or 1 without bias correction."""
    if not group["bias_correction"]:
        return 1.0, 1.0
    beta1, beta2 = group["betas"]
    return 1 - beta1 ** group["step"], 1 - beta2 ** group["step"]


def l2_norm(tensor: torch.Tensor) -> torch.Tensor:
    """The 2-norm, summed pairwise: `norm` is off by 0.1 % on large CPU tensors."""
    return tensor.square().sum().sqrt()
