"""Adam and AdamW with the step counted per group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.reference.fused.base import FusedOptimizer, Values, bias_corrections


class FusedAdam(FusedOptimizer):
    """AdamW, or Adam with L2 decay if `adam_w_mode` is off; the decay defaults to 0.

    Raises RuntimeError on `amsgrad` and on `master_weights` without `capturable`.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        adam_w_mode: bool = True,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        set_grad_none: bool = True,
        capturable: bool = False,
        master_weights: bool = False,
    ) -> None:
        if amsgrad:
            raise RuntimeError("FusedAdam does not support the AMSGrad variant.")
        if master_weights and not capturable:
            raise RuntimeError(
                "Master weights is currently only supported with the capturable version."
            )
        defaults = {
            "lr": lr,
            "bias_correction": bias_correction,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
        }
        super().__init__(params, defaults, set_grad_none)
        self.adam_w_mode = adam_w_mode
        self.master_weights = master_weights
        self._masters: dict[torch.Tensor, torch.Tensor] = {}

    def _weight(self, param: torch.Tensor) -> torch.Tensor:
        weight = super()._weight(param)
        if not self.master_weights:
            return weight
        return self._masters.setdefault(param, weight.clone())

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        # In the order of torch.optim's own operations: the same bits as AdamW and Adam.
        if not state:
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        beta1, beta2 = group["betas"]
        correction1, correction2 = bias_corrections(group)
        if self.adam_w_mode:
            weight.mul_(1 - group["lr"] * group["weight_decay"])
        elif group["weight_decay"] != 0:
            grad = grad.add(weight, alpha=group["weight_decay"])
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = state["exp_avg_sq"].sqrt()
        denominator = (root / correction2**0.5).add_(group["eps"])
        weight.addcdiv_(state["exp_avg"], denominator, value=-(group["lr"] / correction1))
