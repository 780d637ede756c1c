"""NovoGrad: momentum of gradients normalized per parameter."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.reference.fused.base import (
    FusedOptimizer,
    Values,
    bias_corrections,
    l2_norm,
)


class FusedNovoGrad(FusedOptimizer):
    """NovoGrad with the second moment one running gradient norm per parameter.

    `norm_type` is 2 or 0, the maximum norm. With `reg_inside_moment` normalization and decay enter
    the momentum. Raises RuntimeError on `amsgrad` and other norms.
    """

    rounded_state = ("exp_avg",)

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        reg_inside_moment: bool = False,
        grad_averaging: bool = True,
        norm_type: int = 2,
        init_zero: bool = False,
        set_grad_none: bool = True,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedNovoGrad does not support the AMSGrad variant.")
        if norm_type not in (0, 2):
            raise RuntimeError("FusedNovoGrad only support l2/inf norm now.")
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "grad_averaging": grad_averaging,
            "norm_type": norm_type,
            "init_zero": init_zero,
        }
        super().__init__(params, defaults, set_grad_none)
        self.reg_inside_moment = reg_inside_moment

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        self._blend_norm(state, group, grad)
        self._move(state, group, weight, grad)

    def _blend_norm(self, state: Values, group: Values, grad: torch.Tensor) -> None:
        beta2 = group["betas"][1]
        norm = l2_norm(grad) if group["norm_type"] == 2 else grad.abs().max()
        if "exp_avg_sq" not in state:
            # Starting at the first norm makes the first blend leave it as it is.
            state["exp_avg_sq"] = torch.zeros_like(norm) if group["init_zero"] else norm
        last = state["exp_avg_sq"]
        if group["norm_type"] == 2:
            state["exp_avg_sq"] = (beta2 * last**2 + (1 - beta2) * norm**2).sqrt()
        else:
            state["exp_avg_sq"] = beta2 * last + (1 - beta2) * norm

    def _move(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        average = state.setdefault("exp_avg", torch.zeros_like(weight))
        beta1 = group["betas"][0]
        correction1, correction2 = bias_corrections(group)
        denominator = state["exp_avg_sq"] / correction2**0.5 + group["eps"]
        share = 1 - beta1 if group["grad_averaging"] else 1.0
        if self.reg_inside_moment:
            grad = grad / denominator + group["weight_decay"] * weight
            average.mul_(beta1).add_(grad, alpha=share)
            update = average / correction1
        else:
            average.mul_(beta1).add_(grad, alpha=share)
            update = average / correction1 / denominator + group["weight_decay"] * weight
        weight.sub_(group["lr"] * update)
