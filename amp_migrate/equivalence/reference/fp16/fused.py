"""The cut-down mixed-precision optimizer of apex.optimizers in 2019, of apex.contrib.optimizers since."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.state import maybe_print
from amp_migrate.equivalence.reference.fp16.convert import copy_params

_WINDOW = 1000


class FP16_Optimizer:
    """Wraps a FusedAdam: gradients stay scaled until it steps with them on fp32 copies of the weights.

    Raises SystemError on `dynamic_loss_args`, as there.
    """

    def __init__(
        self,
        init_optimizer: Any,
        static_loss_scale: float = 1.0,
        dynamic_loss_scale: bool = False,
        dynamic_loss_args: dict[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        if dynamic_loss_scale and dynamic_loss_args is not None:
            raise SystemError("Do not support dynamic loss scale args for now.")
        self.optimizer = init_optimizer
        self.fp16_groups: list[list[torch.Tensor]] = []
        self.fp32_groups: list[list[torch.Tensor]] = []
        for group in self.optimizer.param_groups:
            masters = [param.detach().clone().float() for param in group["params"]]
            self.fp16_groups.append(group["params"])
            self.fp32_groups.append(masters)
            group["params"] = masters
        self.dynamic_loss_scale = dynamic_loss_scale
        self.cur_scale: float = 2**16 if dynamic_loss_scale else static_loss_scale
        self.cur_iter = 0
        self.last_overflow_iter = -1
        self.scale_factor = 2
        self.scale_window = _WINDOW
        self.verbose = verbose

    @property
    def state(self) -> MutableMapping[torch.Tensor, Any]:
        """The wrapped optimizer's state, kept per copy."""
        state: MutableMapping[torch.Tensor, Any] = self.optimizer.state
        return state

    @state.setter
    def state(self, value: MutableMapping[torch.Tensor, Any]) -> None:
        self.optimizer.state = value

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups, holding the copies."""
        groups: list[dict[str, Any]] = self.optimizer.param_groups
        return groups

    @param_groups.setter
    def param_groups(self, value: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = value

    def zero_grad(self, set_grads_to_None: bool = True) -> None:
        """Drop, or zero, the gradients of the model."""
        for param in (param for group in self.fp16_groups for param in group):
            if set_grads_to_None:
                param.grad = None
            elif param.grad is not None:
                param.grad.detach_()
                param.grad.zero_()

    def backward(self, loss: torch.Tensor) -> None:
        """Backward of the scaled fp32 loss."""
        scaled = loss.float() * self.cur_scale
        scaled.backward()  # type: ignore[no-untyped-call]

    def step(self, closure: None = None) -> None:
        """Step with the scaled gradients; nothing where one of them is not finite."""
        grads = [[param.grad for param in group] for group in self.fp16_groups]
        flat = [grad for group in grads for grad in group if grad is not None]
        skip = not all(math.isfinite(grad.float().norm().item()) for grad in flat)
        if not skip:
            self.optimizer.step(grads=grads, output_params=self.fp16_groups, scale=self.cur_scale)
        self._update_scale(skip)

    def _update_scale(self, skip: bool) -> None:
        if skip:
            maybe_print(f"Grad overflow on iteration {self.cur_iter}, scale {self.cur_scale}")
        if self.dynamic_loss_scale:
            if skip:
                self.cur_scale = max(self.cur_scale / self.scale_factor, 1)
                self.last_overflow_iter = self.cur_iter
            elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.cur_scale *= self.scale_factor
        self.cur_iter += 1

    def state_dict(self) -> dict[str, Any]:
        """Everything to resume from, the copies included."""
        found: dict[str, Any] = {
            "dynamic_loss_scale": self.dynamic_loss_scale,
            "cur_scale": self.cur_scale,
            "cur_iter": self.cur_iter,
        }
        if self.dynamic_loss_scale:
            found["last_overflow_iter"] = self.last_overflow_iter
            found["scale_factor"] = self.scale_factor
            found["scale_window"] = self.scale_window
        found["optimizer_state_dict"] = self.optimizer.state_dict()
        found["fp32_groups"] = self.fp32_groups
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a `state_dict`; load the model's first."""
        for name in state_dict.keys() - {"optimizer_state_dict", "fp32_groups"}:
            setattr(self, name, state_dict[name])
        self.optimizer.load_state_dict(state_dict["optimizer_state_dict"])
        for targets, sources in zip(self.fp32_groups, state_dict["fp32_groups"], strict=True):
            copy_params(targets, sources)
