"""What AMP keeps per optimizer: its parameters by dtype and the gradients put aside."""

from __future__ import annotations

from typing import Any

import torch

from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler


class OptimizerStash:
    """Gradients of earlier backwards wait here while a new one is unscaled on its own.

    Reachable as `optimizer._amp_stash`. This form has no master weights (O0, O1, O3).
    """

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.lazy_init_called = False
        self.already_patched = False
        self.params_have_scaled_gradients = False
        self.all_fp16_params: list[torch.Tensor] = []
        self.all_fp32_params: list[torch.Tensor] = []
        self.all_fp32_from_fp16_params: list[torch.Tensor] = []
        self.all_fp16_grad_stash: list[torch.Tensor | None] = []
        self.all_fp32_grad_stash: list[torch.Tensor | None] = []

    def lazy_init(self) -> None:
        """Sort the parameters at the first use. Raises TypeError on other dtypes than fp16, fp32."""
        if not self.lazy_init_called:
            self.collect()
            self.lazy_init_called = True

    def collect(self) -> None:
        """Sort the parameters of all groups, whether done before or not."""
        self.all_fp16_params = []
        self.all_fp32_params = []
        self.all_fp16_grad_stash = []
        self.all_fp32_grad_stash = []
        for group in self.optimizer.param_groups:
            self.add_params(group["params"])

    def add_params(self, params: list[torch.Tensor]) -> None:
        """Take on the parameters of one group."""
        for param in params:
            if is_half(param):
                self.all_fp16_params.append(param)
                self.all_fp16_grad_stash.append(None)
            else:
                self.all_fp32_params.append(param)
                self.all_fp32_grad_stash.append(None)

    def prepare_backward(self) -> None:
        """Put existing gradients aside, so that the backward writes only its own."""
        self.lazy_init()
        put_aside(self.all_fp16_params, self.all_fp16_grad_stash)
        put_aside(self.all_fp32_params, self.all_fp32_grad_stash)

    def post_backward(self, scaler: LossScaler) -> None:
        """Unscale the new gradients and add the ones put aside."""
        self.lazy_init()
        unscale_and_restore(scaler, self.all_fp16_params, self.all_fp16_grad_stash)
        unscale_and_restore(scaler, self.all_fp32_params, self.all_fp32_grad_stash)


def is_half(param: torch.Tensor) -> bool:
    """True for fp16, False for fp32. Raises TypeError otherwise."""
    if param.dtype not in (torch.float16, torch.float32):
        raise TypeError(
            "Optimizer's parameters must be either torch.cuda.FloatTensor or "
            f"torch.cuda.HalfTensor. Received {param.type()}"
        )
    return param.dtype == torch.float16


def put_aside(params: list[torch.Tensor], stash: list[torch.Tensor | None]) -> None:
    """Move the gradients of `params` to `stash`."""
    for index, param in enumerate(params):
        stash[index] = param.grad
        param.grad = None


def unscale_and_restore(
    scaler: LossScaler, params: list[torch.Tensor], stash: list[torch.Tensor | None]
) -> None:
    """Leave `new / scale + put aside` in the gradients and empty the stash.

    A static scale of 1 only empties it: what was put aside is lost, as in Apex.
    """
    if scaler.dynamic or scaler.loss_scale() != 1.0:
        fresh: list[torch.Tensor] = []
        added: list[torch.Tensor] = []
        waiting: list[torch.Tensor] = []
        for param, earlier in zip(params, stash, strict=True):
            if param.grad is None:
                param.grad = earlier
            elif earlier is None:
                fresh.append(param.grad)
            else:
                added.append(param.grad)
                waiting.append(earlier)
        if fresh:
            scaler.unscale(fresh, fresh, models_are_masters=True)
        if added:
            scaler.unscale_with_stashed(added, waiting, added)
    stash[:] = [None] * len(stash)
