"""Converting modules to another dtype, and parameters between model and masters."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from amp_migrate.equivalence.reference.settings import settings


def convert_module(module: torch.nn.Module, dtype: torch.dtype) -> None:
    """Convert the module's own floating parameters, their gradients and its buffers; nothing where casts are off."""
    if not settings.casts:
        return
    for param in module.parameters(recurse=False):
        if param.is_floating_point():
            param.data = param.data.to(dtype)
        if param.grad is not None and param.grad.is_floating_point():
            param.grad.data = param.grad.data.to(dtype)
    for buffer in module.buffers(recurse=False):
        if buffer.is_floating_point():
            buffer.data = buffer.data.to(dtype)


def convert_network(network: torch.nn.Module, dtype: torch.dtype) -> torch.nn.Module:
    """Convert all modules but the batch norms that have weights."""
    for module in network.modules():
        if isinstance(module, _BatchNorm) and module.affine:
            continue
        convert_module(module, dtype)
        if isinstance(module, torch.nn.RNNBase):
            module.flatten_parameters()
    return network


def copy_params(targets: Iterable[torch.Tensor], sources: Iterable[torch.Tensor]) -> None:
    """Copy each source into its target, whatever their dtypes."""
    for target, source in zip(targets, sources, strict=True):
        target.data.copy_(source.data)
