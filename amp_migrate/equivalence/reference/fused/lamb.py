"""LAMB: Adam directions scaled per parameter by a trust ratio."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.reference.fused.base import (
    FusedOptimizer,
    Values,
    bias_corrections,
    gradient,
    l2_norm,
)


class FusedLAMB(FusedOptimizer):
    """LAMB with a global clip of the gradients to `max_grad_norm`.

    The trust ratio applies to groups with weight decay, or to all with `use_nvlamb`. Raises
    RuntimeError on `amsgrad`.
    """

    rounded_state = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        amsgrad: bool = False,
        adam_w_mode: bool = True,
        grad_averaging: bool = True,
        set_grad_none: bool = True,
        max_grad_norm: float = 1.0,
        use_nvlamb: bool = False,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedLAMB does not support the AMSGrad variant.")
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "max_grad_norm": max_grad_norm,
        }
        super().__init__(params, defaults, set_grad_none)
        self.adam_w_mode = adam_w_mode
        self.use_nvlamb = use_nvlamb
        self._divisor = 1.0

    def _update(self) -> None:
        self._divisor = self._clip_divisor()
        super()._update()

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        update = self._direction(state, group, weight, grad / self._divisor)
        weight.sub_(self._rate(group, weight, update) * update)

    def _clip_divisor(self) -> float:
        grads = [gradient(param) for group in self.param_groups for param in self._used(group)]
        if not grads:
            return 1.0
        norm = float(l2_norm(torch.stack([l2_norm(grad) for grad in grads])))
        limit: float = self.defaults["max_grad_norm"]
        return norm / limit if norm > limit else 1.0

    def _direction(
        self, state: Values, group: Values, weight: Tensor, grad: Tensor
    ) -> torch.Tensor:
        if not state:
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        beta1, beta2 = group["betas"]
        decay = group["weight_decay"]
        correction1, correction2 = bias_corrections(group)
        if not self.adam_w_mode:
            grad = grad + decay * weight
        share = 1 - beta1 if group["grad_averaging"] else 1.0
        state["exp_avg"].mul_(beta1).add_(grad, alpha=share)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = (state["exp_avg_sq"] / correction2).sqrt() + group["eps"]
        update: torch.Tensor = (state["exp_avg"] / correction1) / denominator
        return update + decay * weight if self.adam_w_mode else update

    def _rate(
        self, group: Values, weight: torch.Tensor, update: torch.Tensor
    ) -> float | torch.Tensor:
        lr: float = group["lr"]
        if not self.use_nvlamb and group["weight_decay"] == 0:
            return lr
        weight_norm, update_norm = l2_norm(weight), l2_norm(update)
        return lr * (weight_norm / update_norm) if weight_norm != 0 and update_norm != 0 else lr
