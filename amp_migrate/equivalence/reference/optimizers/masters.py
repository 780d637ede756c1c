"""Master weights: an fp32 copy of every fp16 parameter, which the optimizer updates instead."""

from __future__ import annotations

import math
from typing import Any

import torch

from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler
from amp_migrate.equivalence.reference.optimizers.stash import (
    OptimizerStash,
    is_half,
    put_aside,
    unscale_and_restore,
)


class MasterStash(OptimizerStash):
    """The stash of an optimizer with master weights (O2).

    Masters are made at the first backward, zero_grad or add_param_group. Frozen parameters stay
    fp16 and get none.
    """

    def __init__(self, optimizer: Any) -> None:
        super().__init__(optimizer)
        self.fp16_groups: list[list[torch.Tensor]] = []
        self.fp32_from_fp16_groups: list[list[torch.Tensor]] = []
        self.fp32_from_fp32_groups: list[list[torch.Tensor]] = []
        self.all_fp32_from_fp32_params: list[torch.Tensor] = []
        self.all_fp32_from_fp32_grad_stash: list[torch.Tensor | None] = []

    def collect(self) -> None:
        """Replace the fp16 parameters of all groups by masters and drop the fp32 gradients."""
        for group in self.optimizer.param_groups:
            self.add_params(group["params"])
        for param in self.all_fp32_from_fp32_params:
            param.grad = None
        # Loading its own state makes the optimizer cast the state to the dtype of the masters.
        self.optimizer.load_state_dict(self.optimizer.state_dict())

    def add_params(self, params: list[torch.Tensor]) -> None:
        """Replace the fp16 parameters in `params` by masters, in place."""
        halves: list[torch.Tensor] = []
        masters: list[torch.Tensor] = []
        floats: list[torch.Tensor] = []
        for index, param in enumerate(params):
            if not param.requires_grad:
                continue
            if not is_half(param):
                floats.append(param)
                continue
            master = param.detach().clone().float().requires_grad_(True)
            params[index] = master
            halves.append(param)
            masters.append(master)
            if param in self.optimizer.state:
                self.optimizer.state[master] = self.optimizer.state.pop(param)
        self.fp16_groups.append(halves)
        self.fp32_from_fp16_groups.append(masters)
        self.fp32_from_fp32_groups.append(floats)
        self.all_fp16_params += halves
        self.all_fp32_from_fp16_params += masters
        self.all_fp32_from_fp32_params += floats
        self.all_fp32_from_fp32_grad_stash += [None] * len(floats)

    def prepare_backward(self) -> None:
        """Drop the fp16 gradients, which masters hold already, and put the fp32 ones aside."""
        self.lazy_init()
        for param in self.all_fp16_params:
            param.grad = None
        put_aside(self.all_fp32_from_fp32_params, self.all_fp32_from_fp32_grad_stash)

    def post_backward(self, scaler: LossScaler) -> None:
        """Unscale the fp16 gradients into the masters, and the fp32 ones in place."""
        self.lazy_init()
        fresh: list[torch.Tensor] = []
        fresh_masters: list[torch.Tensor] = []
        added: list[torch.Tensor] = []
        added_masters: list[torch.Tensor] = []
        pairs = zip(self.all_fp16_params, self.all_fp32_from_fp16_params, strict=True)
        for half, master in pairs:
            if half.grad is None:
                continue
            if master.grad is None:
                # An overflow leaves the rest unwritten; Apex has uninitialized memory there.
                master.grad = torch.full_like(master, math.inf)
                fresh.append(half.grad)
                fresh_masters.append(master.grad)
            else:
                added.append(half.grad)
                added_masters.append(master.grad)
        if fresh:
            scaler.unscale(fresh, fresh_masters)
        if added:
            scaler.unscale_with_stashed(added, added_masters, added_masters)
        unscale_and_restore(
            scaler, self.all_fp32_from_fp32_params, self.all_fp32_from_fp32_grad_stash
        )

    def copy_to_model(self) -> None:
        """Write the masters into the fp16 parameters."""
        pairs = zip(self.all_fp16_params, self.all_fp32_from_fp16_params, strict=True)
        for half, master in pairs:
            half.data.copy_(master.data)

    def zero_model_grads(self) -> None:
        """Zero the fp16 and fp32 gradients of the model and drop those of the masters."""
        self.lazy_init()
        for param in [*self.all_fp16_params, *self.all_fp32_from_fp32_params]:
            if param.grad is not None:
                param.grad.detach_()
                param.grad.zero_()
        self.drop_master_grads()

    def drop_master_grads(self) -> None:
        """Set the masters' gradients to None."""
        for master in self.all_fp32_from_fp16_params:
            master.grad = None
