"""FusedAdam as apex.optimizers had it until 2019, and apex.contrib.optimizers has it since."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from amp_migrate.equivalence.reference.fp16.convert import copy_params
from amp_migrate.equivalence.reference.fused.adam import FusedAdam
from amp_migrate.equivalence.reference.fused.base import Values, bias_corrections

Groups = Sequence[Sequence[torch.Tensor | None]]


class FusedAdamOfBoth(FusedAdam):
    """The FusedAdam of today that takes by name what it took until 2019.

    Where an FP16_Optimizer gives `step` scaled gradients it is as it was then: each group is clipped by `max_grad_norm`,
    and bias correction scales eps and the decay of the weights too.
    """

    def __init__(
        self,
        params: Any,
        *args: Any,
        eps_inside_sqrt: bool = False,
        max_grad_norm: float = 0.0,
        use_mt: bool = False,
        amp_scale_adjustment: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(params, *args, **kwargs)
        self.eps_inside_sqrt = eps_inside_sqrt
        self.max_grad_norm = max_grad_norm
        self._scaled = False

    def step(
        self,
        closure: Callable[[], Any] | None = None,
        grads: Groups | None = None,
        output_params: Groups | None = None,
        scale: float = 1.0,
    ) -> Any:
        """Step, on fp32 copies with scaled gradients of the `output_params` where those are given."""
        if grads is None or output_params is None:
            return super().step(closure)
        for group, scaled in zip(self.param_groups, grads, strict=True):
            for param, grad in zip(group["params"], scaled, strict=True):
                param.grad = None if grad is None else grad.detach().float() / scale
            norm = group.get("max_grad_norm", self.max_grad_norm)
            if norm > 0:
                # The same factor as in the kernel, 1 / ((norm + 1e-6) / max_grad_norm), by the operations of torch.
                torch.nn.utils.clip_grad_norm_(group["params"], norm)
        before, self._scaled = self._scaled, True
        super().step()
        self._scaled = before
        for group, outputs in zip(self.param_groups, output_params, strict=True):
            copy_params((p for p in outputs if p is not None), group["params"])
            for param in group["params"]:
                param.grad = None
        return None

    def _update_one(self, state: Values, group: Values, weight: Tensor, grad: Tensor) -> None:
        if not self._scaled:
            super()._update_one(state, group, weight, grad)
            return
        if not state:
            state["exp_avg"] = torch.zeros_like(weight)
            state["exp_avg_sq"] = torch.zeros_like(weight)
        beta1, beta2 = group["betas"]
        correction1, correction2 = bias_corrections(group)
        size = group["lr"] * correction2**0.5 / correction1
        weight.mul_(1 - size * group["weight_decay"])
        state["exp_avg"].lerp_(grad, 1 - beta1)
        squares = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if self.eps_inside_sqrt:
            denominator = squares.add(group["eps"]).sqrt_()
        else:
            denominator = squares.sqrt().add_(group["eps"])
        weight.addcdiv_(state["exp_avg"], denominator, value=-size)


class OldFusedAdam(FusedAdamOfBoth):
    """The FusedAdam of then, whose arguments come in the order of then."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        bias_correction: bool = True,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eps_inside_sqrt: bool = False,
        weight_decay: float = 0.0,
        max_grad_norm: float = 0.0,
        amsgrad: bool = False,
        use_mt: bool = False,
        amp_scale_adjustment: float = 1.0,
    ) -> None:
        super().__init__(
            params,
            lr,
            bias_correction,
            betas,
            eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            eps_inside_sqrt=eps_inside_sqrt,
            max_grad_norm=max_grad_norm,
        )
        self._scaled = True
