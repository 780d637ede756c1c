"""What the fused optimizers share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import torch


class FusedOptimizer(torch.optim.Optimizer, abc.ABC):
    """`zero_grad` takes no argument; parameters in half precision are updated through fp32."""

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
    def _update(self) -> None:
        """Update all parameters that have a gradient, without gradients."""

    def _used(self, group: dict[str, Any]) -> Iterator[torch.Tensor]:
        for param in group["params"]:
            if param.grad is None:
                continue
            if param.grad.is_sparse:
                raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")
            yield param


def weight_and_grad(param: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight and gradient in fp32; the weight is the parameter itself if that is fp32."""
    assert param.grad is not None
    return param.detach().float(), param.grad.detach().float()


def bias_corrections(group: dict[str, Any]) -> tuple[float, float]:
    """`1 - beta ** step` for both betas, or 1 without bias correction."""
    if not group["bias_correction"]:
        return 1.0, 1.0
    beta1, beta2 = group["betas"]
    return 1 - beta1 ** group["step"], 1 - beta2 ** group["step"]


def l2_norm(tensor: torch.Tensor) -> torch.Tensor:
    """The 2-norm, summed pairwise: `norm` is off by 0.1 % on large CPU tensors."""
    return tensor.square().sum().sqrt()
