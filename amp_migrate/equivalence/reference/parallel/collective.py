"""Calls over all ranks on tensors of mixed dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors


def is_distributed() -> bool:
    """Whether a process group exists."""
    return dist.is_available() and dist.is_initialized()


def each_dtype_flat(
    tensors: Iterable[torch.Tensor], call: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Replace the tensors, in place, by `call` of each dtype's flattened together."""
    by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
    for tensor in tensors:
        by_dtype.setdefault(tensor.dtype, []).append(tensor)
    for bucket in by_dtype.values():
        flat = call(_flatten_dense_tensors(bucket))  # type: ignore[no-untyped-call]
        parts = _unflatten_dense_tensors(flat, bucket)  # type: ignore[no-untyped-call]
        for tensor, part in zip(bucket, parts, strict=True):
            tensor.copy_(part)


def broadcast_parameters(module: torch.nn.Module) -> None:
    """Give every rank the parameters, not the buffers, of rank 0."""

    def broadcast(flat: torch.Tensor) -> torch.Tensor:
        dist.broadcast(flat, 0)
        return flat

    each_dtype_flat((param.data for param in module.parameters()), broadcast)


def average(flat: torch.Tensor) -> torch.Tensor:
    """The mean over all ranks."""
    dist.all_reduce(flat)
    return flat.div_(dist.get_world_size())
