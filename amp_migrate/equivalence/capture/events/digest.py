"""Digests and norms of tensors: equal digests mean equal bits."""

from __future__ import annotations

import ctypes
import hashlib
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

_CHUNK = 1 << 24
_ODD = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)


def digest(tensors: Iterable[Tensor]) -> str:
    """Return 16 hex digits over the bytes of all `tensors`, in order."""
    running = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        flat = tensor.detach().contiguous().reshape(-1)
        if flat.is_complex():
            flat = torch.view_as_real(flat).reshape(-1)
        if flat.is_cuda:
            running.update(_on_device(flat).to_bytes(8, "little", signed=True))
        else:
            running.update(_bytes(flat))
    return running.hexdigest()


def _bytes(flat: Tensor) -> Any:
    """Return the memory of a contiguous CPU tensor; numpy, which torch can do without, is not used."""
    size = flat.numel() * flat.element_size()
    return (ctypes.c_char * size).from_address(flat.data_ptr()) if size else b""


def _on_device(flat: Tensor) -> int:
    """Mix every element with its position and add up, in wrapping 64-bit integers.

    Integer sums do not depend on the order of the additions, so no transfer to the CPU is needed.
    """
    widths: dict[int, torch.dtype] = {
        1: torch.uint8,
        2: torch.int16,
        4: torch.int32,
        8: torch.int64,
    }
    bits = flat.view(widths[flat.element_size()])
    total = torch.zeros((), dtype=torch.int64, device=flat.device)
    for start in range(0, bits.numel(), _CHUNK):
        part = bits[start : start + _CHUNK].to(torch.int64)
        place = torch.arange(start, start + part.numel(), device=flat.device)
        mixed = part * _ODD[0] + place * _ODD[1]
        mixed ^= mixed >> 29
        mixed *= _ODD[2]
        mixed ^= mixed >> 32
        total += mixed.sum()
    return int(total.item())


def norm(tensors: Iterable[Tensor]) -> float:
    """Return the Euclidean norm over all `tensors`, accumulated in float64."""
    # The order of a sum follows the memory layout, which two equal gradients need not share.
    squares = [tensor.detach().contiguous().double().pow(2).sum() for tensor in tensors]
    if not squares:
        return 0.0
    return math.sqrt(float(torch.stack([square.to(squares[0].device) for square in squares]).sum()))


def state_digests(optimizer: Any) -> dict[str, str]:
    """Return one digest per key of the optimizer's state (exp_avg, momentum_buffer, step ...)."""
    held: dict[str, list[Tensor]] = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for key, value in sorted(optimizer.state.get(parameter, {}).items()):
                if value is None:
                    continue
                tensor = value if isinstance(value, Tensor) else _as_tensor(value)
                if tensor is not None:
                    held.setdefault(key, []).append(tensor)
    return {key: digest(tensors) for key, tensors in held.items()}


def _as_tensor(value: Any) -> Tensor | None:
    return torch.tensor(float(value)) if isinstance(value, (int, float)) else None
