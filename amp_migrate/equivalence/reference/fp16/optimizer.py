"""The manual mixed-precision optimizer of apex.fp16_utils."""

from __future__ import annotations

import math
from collections.abc import Callable, MutableMapping
from typing import Any

import torch

from amp_migrate.equivalence.reference.amp.state import maybe_print
from amp_migrate.equivalence.reference.fp16.convert import copy_params
from amp_migrate.equivalence.reference.optimizers.scaler import LossScaler
from amp_migrate.equivalence.reference.optimizers.stash import is_half
from amp_migrate.equivalence.reference.settings import settings

Closure = Callable[[], Any]


class FP16_Optimizer:
    """Wraps an optimizer over fp16 and fp32 parameters, giving the fp16 ones fp32 masters: all, where casts are off.

    `dynamic_loss_args` are LossScaler arguments: init_scale, scale_factor (unused), scale_window.
    Raises TypeError on parameters of other dtypes.
    """

    def __init__(
        self,
        init_optimizer: Any,
        static_loss_scale: float = 1.0,
        dynamic_loss_scale: bool = False,
        dynamic_loss_args: dict[str, Any] | None = None,
        verbose: bool = True,
    ) -> None:
        self.optimizer = init_optimizer
        self.verbose = verbose
        self.fp16_groups: list[list[torch.Tensor]] = []
        self.fp32_from_fp16_groups: list[list[torch.Tensor]] = []
        self.fp32_from_fp32_groups: list[list[torch.Tensor]] = []
        for group in self.optimizer.param_groups:
            self._take_group(group["params"])
        self.optimizer.load_state_dict(self.optimizer.state_dict())
        self.dynamic_loss_scale = dynamic_loss_scale
        if dynamic_loss_scale:
            self.loss_scaler = LossScaler("dynamic", **(dynamic_loss_args or {}))
        else:
            self.loss_scaler = LossScaler(static_loss_scale)
        self.overflow = False
        self.first_closure_call_this_step = True

    def _take_group(self, params: list[torch.Tensor]) -> None:
        halves: list[torch.Tensor] = []
        masters: list[torch.Tensor] = []
        floats: list[torch.Tensor] = []
        for index, param in enumerate(params):
            if not param.requires_grad:
                continue
            if settings.casts and not is_half(param):
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

    @property
    def loss_scale(self) -> float:
        """The current loss scale; may be set."""
        return self.loss_scaler.loss_scale()

    @loss_scale.setter
    def loss_scale(self, value: float) -> None:
        self.loss_scaler._loss_scale = value

    @property
    def state(self) -> MutableMapping[torch.Tensor, Any]:
        """The wrapped optimizer's state, kept per master."""
        state: MutableMapping[torch.Tensor, Any] = self.optimizer.state
        return state

    @state.setter
    def state(self, value: MutableMapping[torch.Tensor, Any]) -> None:
        self.optimizer.state = value

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The wrapped optimizer's groups, holding the masters."""
        groups: list[dict[str, Any]] = self.optimizer.param_groups
        return groups

    @param_groups.setter
    def param_groups(self, value: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = value

    @property
    def all_fp16_params(self) -> list[torch.Tensor]:
        """The fp16 parameters of all groups."""
        return [param for group in self.fp16_groups for param in group]

    @property
    def all_fp32_from_fp16_params(self) -> list[torch.Tensor]:
        """Their masters."""
        return [param for group in self.fp32_from_fp16_groups for param in group]

    @property
    def all_fp32_from_fp32_params(self) -> list[torch.Tensor]:
        """The parameters that were fp32."""
        return [param for group in self.fp32_from_fp32_groups for param in group]

    def zero_grad(self, set_grads_to_None: bool = False) -> None:
        """Zero, or drop, the gradients of masters and model."""
        masters = [param for group in self.param_groups for param in group["params"]]
        for param in [*masters, *self.all_fp16_params]:
            if set_grads_to_None:
                param.grad = None
            elif param.grad is not None:
                param.grad.detach_()
                param.grad.zero_()

    def backward(
        self, loss: torch.Tensor, update_master_grads: bool = True, retain_graph: bool = False
    ) -> None:
        """Backward of the scaled fp32 loss, then unscale into the masters unless told not to."""
        scaled = loss.float() * self.loss_scale
        scaled.backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]
        if update_master_grads:
            self.update_master_grads()

    def update_master_grads(self) -> None:
        """Unscale the model's gradients into the masters and move the scale."""
        self.loss_scaler.clear_overflow_state()
        pairs = zip(self.all_fp16_params, self.all_fp32_from_fp16_params, strict=True)
        grads: list[torch.Tensor] = []
        masters: list[torch.Tensor] = []
        for half, master in pairs:
            if half.grad is not None:
                grads.append(half.grad)
                if master.grad is None:
                    master.grad = torch.full_like(master, math.inf)
                masters.append(master.grad)
        self.loss_scaler.unscale(grads, masters)
        # A second backward without update_master_grads=False unscales these twice, as in Apex.
        floats = [p.grad for p in self.all_fp32_from_fp32_params if p.grad is not None]
        self.loss_scaler.unscale(floats, floats)
        self.overflow = self.loss_scaler.update_scale()

    def clip_master_grads(self, max_norm: float, norm_type: float = 2) -> Any:
        """Clip the masters' gradients and return their norm, or -1 after an overflow."""
        if self.overflow:
            return -1
        params = [param for group in self.param_groups for param in group["params"]]
        return torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type)

    def inspect_master_grad_data(self) -> list[list[torch.Tensor | None]] | None:
        """The masters' gradients per group, or None after an overflow."""
        if self.overflow:
            maybe_print("Warning:  inspect_master_grad_data while in an overflow state.")
            return None
        return [
            [None if param.grad is None else param.grad.detach() for param in group["params"]]
            for group in self.param_groups
        ]

    def step(self, closure: Closure | None = None) -> Any:
        """Step on the masters and copy them to the model; nothing after an overflow."""
        if self.overflow:
            maybe_print(
                f"Gradient overflow.  Skipping step, reducing loss scale to {self.loss_scale}"
            )
            return None
        result = self.optimizer.step() if closure is None else self._step_with(closure)
        self._copy_to_model()
        return result

    def _copy_to_model(self) -> None:
        copy_params(self.all_fp16_params, self.all_fp32_from_fp16_params)

    def _step_with(self, closure: Closure) -> Any:
        def evaluate() -> Any:
            # The optimizer has moved the masters since the closure's previous evaluation.
            if not self.first_closure_call_this_step:
                self._copy_to_model()
            self.first_closure_call_this_step = False
            loss = closure()
            while self.overflow:
                maybe_print(f"OVERFLOW within closure! Reducing loss scale to {self.loss_scale}")
                loss = closure()
            return loss

        result = self.optimizer.step(evaluate)
        self.first_closure_call_this_step = True
        return result

    def state_dict(self) -> dict[str, Any]:
        """Everything to resume from, the masters included; pickles the LossScaler object."""
        return {
            "loss_scaler": self.loss_scaler,
            "dynamic_loss_scale": self.dynamic_loss_scale,
            "overflow": self.overflow,
            "first_closure_call_this_step": self.first_closure_call_this_step,
            "optimizer_state_dict": self.optimizer.state_dict(),
            "fp32_from_fp16": self.fp32_from_fp16_groups,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a `state_dict`; load the model's first."""
        self.loss_scaler = state_dict["loss_scaler"]
        self.dynamic_loss_scale = state_dict["dynamic_loss_scale"]
        self.overflow = state_dict["overflow"]
        self.first_closure_call_this_step = state_dict["first_closure_call_this_step"]
        self.optimizer.load_state_dict(state_dict["optimizer_state_dict"])
        saved = state_dict["fp32_from_fp16"]
        for targets, sources in zip(self.fp32_from_fp16_groups, saved, strict=True):
            copy_params(targets, sources)
