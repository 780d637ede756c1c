"""SGD with momentum."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim.optimizer import required

from amp_migrate.equivalence.reference.fused.base import FusedOptimizer, Values


class FusedSGD(FusedOptimizer):
    """SGD as in torch; `wd_after_momentum` adds the decay to the update instead.

    `materialize_master_grads` is a memory option without effect here: masters always have
    gradients. `lr` is required, here or in every group. Raises ValueError on contradictory arguments.
    """

    rounded_state = ("momentum_buffer",)
    counts_steps = False

    def __init__(
        self,
        params: Any,
        lr: Any = required,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        wd_after_momentum: bool = False,
        materialize_master_grads: bool = True,
        set_grad_none: bool = False,
    ) -> None:
        if min(momentum, weight_decay) < 0.0 or (lr is not required and lr < 0.0):
            raise ValueError("lr, momentum and weight_decay must not be negative")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(params, defaults, set_grad_none)
        self.wd_after_momentum = wd_after_momentum
        self.materialize_master_grads = materialize_master_grads

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        decay, momentum = group["weight_decay"], group["momentum"]
        if decay != 0 and not self.wd_after_momentum:
            grad = grad.add(weight, alpha=decay)
        if momentum != 0:
            if "momentum_buffer" in state:
                state["momentum_buffer"].mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            else:
                state["momentum_buffer"] = grad.clone()
            average = state["momentum_buffer"]
            grad = grad.add(average, alpha=momentum) if group["nesterov"] else average
        if decay != 0 and self.wd_after_momentum:
            grad = grad.add(weight, alpha=decay)
        weight.add_(grad, alpha=-group["lr"])
