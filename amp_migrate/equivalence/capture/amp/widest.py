"""Casts off: operators that casts would give one type get the widest type of their operands.

Data that a program keeps in fp16 meet the fp32 weights of a network there, which casts would have made fp16.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from amp_migrate.equivalence.reference.casts import lists

_HALVES = (torch.float16, torch.bfloat16)
_PLACES = (
    (torch.nn.functional, (*lists.FUNCTIONAL_HALF, *lists.FUNCTIONAL_FLOAT, "bilinear", "prelu")),
    (torch, (*lists.TORCH_HALF, "einsum")),
    (Tensor, (*lists.TORCH_HALF, "__matmul__", "__rmatmul__")),
)
CAST = frozenset(
    getattr(owner, name) for owner, names in _PLACES for name in names if hasattr(owner, name)
)


class Widest(TorchFunctionMode):
    """Runs what is cast together in fp32 or fp64 where one operand has that type and another 16 bits."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in CAST and kwargs.get("out") is None:
            operands = [value for value in (*args, *kwargs.values()) if _is_floating(value)]
            wide = {value.dtype for value in operands} - set(_HALVES)
            if wide and any(value.dtype in _HALVES for value in operands):
                widest = max(wide, key=lambda dtype: torch.finfo(dtype).bits)
                args = [_widened(value, widest) for value in args]
                kwargs = {name: _widened(value, widest) for name, value in kwargs.items()}
        return func(*args, **kwargs)


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _widened(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if _is_floating(value) and value.dtype in _HALVES else value


def install() -> None:
    """Run the whole process so; what a program enters itself stands within."""
    Widest().__enter__()  # type: ignore[no-untyped-call]
