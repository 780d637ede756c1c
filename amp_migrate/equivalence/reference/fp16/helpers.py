"""The helpers of apex.fp16_utils for mixed precision by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.modules.batchnorm import _BatchNorm

from amp_migrate.equivalence.reference.fp16.convert import convert_network, copy_params
from amp_migrate.equivalence.reference.settings import settings


def half(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` in fp16, or as it is where casts are off."""
    return tensor.half() if settings.casts else tensor


class tofp16(torch.nn.Module):
    """Casts its input to fp16."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """`input` in fp16."""
        return half(input)


def BN_convert_float(module: torch.nn.Module) -> torch.nn.Module:
    """Make the batch norms with weights in `module` fp32."""
    for child in module.modules():
        if isinstance(child, _BatchNorm) and child.affine:
            child.float()
    return module


def network_to_half(network: torch.nn.Module) -> torch.nn.Sequential:
    """An input cast and the fp16 network; state dict keys gain the prefix "1."."""
    converted = BN_convert_float(network.half()) if settings.casts else network
    return torch.nn.Sequential(tofp16(), converted)


class FP16Model(torch.nn.Module):
    """The converted network behind an input cast; state dict keys gain the prefix "network."."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = convert_network(network, torch.half)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """The network on fp16 inputs."""
        return self.network(*map(half, inputs))


def prep_param_lists(
    model: torch.nn.Module, flat_master: bool = False
) -> tuple[list[torch.nn.Parameter], list[torch.Tensor]]:
    """The trainable parameters and their fp32 masters, or one flat master."""
    params = [param for param in model.parameters() if param.requires_grad]
    if not flat_master:
        return params, [p.detach().clone().float().requires_grad_(True) for p in params]
    flat = _flatten_dense_tensors([p.detach() for p in params]).float()  # type: ignore[no-untyped-call]
    master = torch.nn.Parameter(flat)
    master.grad = torch.zeros_like(master)
    return params, [master]


def model_grads_to_master_grads(
    model_params: Sequence[torch.Tensor],
    master_params: Sequence[torch.Tensor],
    flat_master: bool = False,
) -> None:
    """Copy the model's gradients to the masters."""
    if flat_master:
        grads = [param.grad for param in model_params]
        target: Any = master_params[0].grad
        target.copy_(_flatten_dense_tensors(grads))  # type: ignore[no-untyped-call]
        return
    for param, master in zip(model_params, master_params, strict=True):
        if param.grad is None:
            master.grad = None
            continue
        if master.grad is None:
            master.grad = torch.empty_like(master)
        master.grad.copy_(param.grad)


def master_params_to_model_params(
    model_params: Sequence[torch.Tensor],
    master_params: Sequence[torch.Tensor],
    flat_master: bool = False,
) -> None:
    """Copy the masters to the model."""
    if flat_master:
        master_params = _unflatten_dense_tensors(master_params[0].detach(), model_params)  # type: ignore[no-untyped-call]
    copy_params(model_params, master_params)


def to_python_float(value: Any) -> float:
    """The number in a one-element tensor or sequence."""
    return float(value.item() if hasattr(value, "item") else value[0])


class LossScaler:
    """A static loss scale."""

    def __init__(self, scale: float = 1) -> None:
        self.cur_scale = scale

    @property
    def loss_scale(self) -> float:
        """The scale."""
        return self.cur_scale

    def has_overflow(self, params: Any) -> bool:
        """Never."""
        return False

    def update_scale(self, overflow: bool) -> None:
        """The scale stays."""

    def scale_gradient(self, module: Any, grad_in: Any, grad_out: Any) -> tuple[Any, ...]:
        """The scaled gradients, as a backward hook."""
        return tuple(self.loss_scale * grad for grad in grad_in)

    def backward(self, loss: torch.Tensor, retain_graph: bool = False) -> None:
        """Backward of the scaled loss."""
        (loss * self.loss_scale).backward(retain_graph=retain_graph)  # type: ignore[no-untyped-call]


class DynamicLossScaler(LossScaler):
    """A loss scale divided on overflow, not below 1, and multiplied every `scale_window` steps."""

    def __init__(
        self, init_scale: float = 2**32, scale_factor: float = 2.0, scale_window: int = 1000
    ) -> None:
        super().__init__(init_scale)
        self.cur_iter = 0
        self.last_overflow_iter = -1
        self.scale_factor = scale_factor
        self.scale_window = scale_window

    def has_overflow(self, params: Any) -> bool:
        """Whether the fp32 sum of any gradient is not finite."""
        sums = [param.grad.float().sum() for param in params if param.grad is not None]
        return not all(bool(torch.isfinite(total)) for total in sums)

    def update_scale(self, overflow: bool) -> None:
        """Move the scale after a step."""
        if overflow:
            self.cur_scale = max(self.cur_scale / self.scale_factor, 1)
            self.last_overflow_iter = self.cur_iter
        elif (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
            self.cur_scale *= self.scale_factor
        self.cur_iter += 1
