"""Adagrad."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.reference.fused.base import FusedOptimizer, Values


class FusedAdagrad(FusedOptimizer):
    """Adagrad as in torch; `adagrad_w_mode` decouples the weight decay."""

    rounded_state = ("sum",)
    counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        eps: float = 1e-10,
        weight_decay: float = 0.0,
        set_grad_none: bool = True,
        adagrad_w_mode: bool = False,
    ) -> None:
        defaults = {"lr": lr, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, defaults, set_grad_none)
        self.adagrad_w_mode = adagrad_w_mode

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        lr, decay = group["lr"], group["weight_decay"]
        before = weight.clone()
        if decay != 0 and not self.adagrad_w_mode:
            grad = grad.add(weight, alpha=decay)
        if not state:
            state["sum"] = torch.zeros_like(weight)
        state["sum"].addcmul_(grad, grad, value=1)
        weight.addcdiv_(grad, state["sum"].sqrt().add_(group["eps"]), value=-lr)
        if decay != 0 and self.adagrad_w_mode:
            weight.add_(before, alpha=-lr * decay)
